// hf.workers: who is there, in all processes; and asking one of them to take no more jobs, or to end.
import { NotFound, StateConflict } from "../errors.ts";
import { checkId } from "../shared/check-id.ts";
import { drainWorker, isStopping, resumeWorker, stopWorker } from "../store/workers/drain.ts";
import type { Store } from "../store/sql.ts";
import { listWorkers, type WorkerList } from "../store/workers/list.ts";

/** `hf.workers`: the workers of all processes; asks one to take no more jobs. */
export interface Workers {
  /** At most 1,000 workers, and the 200 leases that end first. */
  list(): Promise<WorkerList>;
  /** It takes no more jobs; what runs in it goes on. It learns of it within seconds. */
  drain(id: string, options?: { by?: string | undefined }): Promise<{ name: string }>;
  /**
   * It ends: no more jobs, the grace that it was given for those that run, the rest is released. Its process goes on, unless
   * that is `holdfast worker`, which ends with it.
   */
  stop(id: string, options?: { by?: string | undefined }): Promise<{ name: string }>;
  /** It takes jobs again. */
  resume(id: string): Promise<{ name: string }>;
}

export interface WorkersInput {
  store: Store;
  /** Tells the workers, here and elsewhere, to ask what they are to do. */
  tell(): void;
}

export function makeWorkers({ store, tell }: WorkersInput): Workers {
  const found = (id: string, name: string | null): { name: string } => {
    if (name === null)
      throw new NotFound(`There is no worker ${id}.`, "It may have ended; hf.workers.list() has those that are there.");
    tell();
    return { name };
  };
  return {
    list: () => listWorkers(store),
    drain: async (id, { by } = {}) => found(id, await drainWorker(store, checkId(id, "The worker id"), by ?? null)),
    stop: async (id, { by } = {}) => found(id, await stopWorker(store, checkId(id, "The worker id"), by ?? null)),
    async resume(id) {
      const name = await resumeWorker(store, checkId(id, "The worker id"));
      if (name === null && (await isStopping(store, id))) {
        throw new StateConflict(`Worker ${id} is stopping and cannot be resumed.`, "Start another one.");
      }
      return found(id, name);
    },
  };
}
