// /api/v1/workers.
import type { Holdfast } from "../../client/client.ts";
import type { Lease } from "../../store/workers/list.ts";
import { workerContracts } from "../contracts/workers.ts";
import { iso } from "../job-view.ts";
import { route } from "./route.ts";

const toLeaseView = (lease: Lease) => ({ ...lease, expiresAt: lease.expiresAt.toISOString() });

export function makeWorkerRoutes(hf: Holdfast) {
  return {
    listWorkers: route(workerContracts.listWorkers, async () => {
      const { workers, orphans } = await hf.workers.list();
      return {
        body: {
          workers: workers.map((worker) => ({
            ...worker,
            startedAt: worker.startedAt.toISOString(),
            beatAt: worker.beatAt.toISOString(),
            drainAskedAt: iso(worker.drainAskedAt),
            stopAskedAt: iso(worker.stopAskedAt),
            leases: worker.leases.map(toLeaseView),
          })),
          orphans: orphans.map(toLeaseView),
        },
      };
    }),
    drainWorker: route(workerContracts.drainWorker, async ({ params: { id } }, { caller }) => {
      const { name } = await hf.workers.drain(id, { by: caller.name });
      return { body: { id, name, draining: true } };
    }),
    stopWorker: route(workerContracts.stopWorker, async ({ params: { id } }, { caller }) => {
      const { name } = await hf.workers.stop(id, { by: caller.name });
      return { body: { id, name, stopping: true } };
    }),
    resumeWorker: route(workerContracts.resumeWorker, async ({ params: { id } }) => {
      const { name } = await hf.workers.resume(id);
      return { body: { id, name, draining: false } };
    }),
  };
}
