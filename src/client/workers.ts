// hf.workers: who is there, in all processes.
import type { Store } from "../store/sql.ts";
import { listWorkers, type WorkerList } from "../store/workers/list.ts";

export interface Workers {
  /** At most 1,000 workers, and the 200 leases that end first. */
  list(): Promise<WorkerList>;
}

export function makeWorkers(store: Store): Workers {
  return { list: () => listWorkers(store) };
}
