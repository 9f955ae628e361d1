// /api/v1/workers.
import type { Holdfast } from "../../client/client.ts";
import type { Lease } from "../../store/workers/list.ts";
import { workerContracts } from "../contracts/workers.ts";
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
            leases: worker.leases.map(toLeaseView),
          })),
          orphans: orphans.map(toLeaseView),
        },
      };
    }),
  };
}
