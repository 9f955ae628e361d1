// hf.errors: failed attempts by what their errors have in common, and the dead by what killed them.
import { type Chore, defineChore } from "../job/define-chore.ts";
import type { ErrorTally } from "../metrics/error-tally.ts";
import { checkLimit } from "../shared/page.ts";
import { addErrorCounts, trimErrors } from "../store/errors/add.ts";
import { type DeadGroup, type ErrorGroup, listDeadGroups, listErrors } from "../store/errors/list.ts";
import type { Store } from "../store/sql.ts";

/** Which errors `hf.errors.list` gives. */
export interface ErrorsOptions {
  kind?: string | undefined;
  queue?: string | undefined;
  limit?: number | undefined;
}

/** `hf.errors`: failed attempts, and dead jobs, by what their errors have in common. */
export interface Errors {
  /** The last one first; seen in the last eight days. Figures are some seconds old. */
  list(options?: ErrorsOptions): Promise<ErrorGroup[]>;
  /** Dead jobs by kind and error, most first; each counted up to 10,000. */
  dead(options?: { limit?: number | undefined }): Promise<DeadGroup[]>;
}

const MOST = 200;

export function makeErrors(store: Store): Errors {
  return {
    list: async ({ kind, queue, limit = 50 } = {}) =>
      await listErrors(store, { kind: kind ?? null, queue: queue ?? null, limit: checkLimit(limit, MOST) }),
    dead: async ({ limit = 50 } = {}) => await listDeadGroups(store, checkLimit(limit, MOST)),
  };
}

/** Every process has seen its own errors. */
export function makeErrorChores(store: Store, tally: ErrorTally): Chore[] {
  return [
    defineChore("add-error-counts", {
      every: "5s",
      everywhere: true,
      async run() {
        const errors = tally.take();
        try {
          await addErrorCounts(store, errors);
        } catch (error) {
          tally.putBack(errors);
          throw error;
        }
      },
    }),
    defineChore("trim-errors", {
      every: "1h",
      run: async (context) => void (await context.inBatches("trimmed", (limit) => trimErrors(store, limit))),
    }),
  ];
}
