// hf.workers: who is there, in all processes; and asking one of them to take no more jobs.
import { NotFound } from "../errors.ts";
import { checkId } from "../shared/check-id.ts";
import { drainWorker, resumeWorker } from "../store/workers/drain.ts";
import type { Store } from "../store/sql.ts";
import { listWorkers, type WorkerList } from "../store/workers/list.ts";

/** `hf.workers`: the workers of all processes; asks one to take no more jobs. */
export interface Workers {
  /** At most 1,000 workers, and the 200 leases that end first. */
  list(): Promise<WorkerList>;
  /** It takes no more jobs; what runs in it goes on. It learns of it within seconds. */
  drain(id: string, options?: { by?: string | undefined }): Promise<{ name: string }>;
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
    resume: async (id) => found(id, await resumeWorker(store, checkId(id, "The worker id"))),
  };
}
