// The frame of what changes a whole batch: pause, resume, cancel, delete. Each is one commit, can be asked for twice, and
// answers with the state it found.
import type { BatchState } from "../../job/batch.ts";
import { routine, type Routine, type Store } from "../sql.ts";
import { ADVANCED, advance, type Advanced, LOCK_BATCH } from "./advance.ts";

export interface Controlled {
  /** The state before. */
  was: BatchState;
  /** False: nothing had to be changed, or nothing could. */
  changed: boolean;
  /** Jobs that run, and have to be told. */
  running: string[];
  advanced: Advanced | undefined;
}

export interface ControlInput {
  name: string;
  what: string;
  /** When something is to be done; `v_b` is the batch. */
  when: string;
  declares?: string[];
  /** What is done, before the batch goes on. */
  work: string;
  change?: Partial<Parameters<typeof advance>[0]>;
}

/** The answer of a routine that leaves everything as it is. */
export const UNCHANGED = (running = "null::uuid[]"): string => `
return query select v_b.state::text, false, ${running}, null::bigint, 0, false, v_b.state::text, v_b.kind::text,
  v_b.rank::smallint, v_b.owner::text, null::text;
return;`;

export const control = ({ name, what, when, declares = [], work, change = {} }: ControlInput): Routine =>
  routine({
    name,
    takes: ["uuid", "text"],
    gives: `was text, changed boolean, running uuid[], ${ADVANCED}`,
    settings: ["lock_timeout = '2s'"],
    declares: ["v_b record", "v_running uuid[]", ...declares],
    first: `
${LOCK_BATCH("$1")}
select b.* into v_b from :schema.batches b where b.id = $1 and b.deleted_at is null;
if not found then return; end if;
if not (${when}) then ${UNCHANGED()} end if;
${work}`,
    body: `select v_b.state::text, true, v_running, a.* from ${advance({ what, by: "$2", ...change })} a`,
  });

/** Undefined: there is no such batch. */
export async function runControl(
  store: Store,
  statement: Routine,
  id: string,
  by: string | null,
): Promise<Controlled | undefined> {
  type Row = Advanced & { was: BatchState; changed: boolean; running: string[] | null };
  const { rows } = await store.query<Row>(statement, [id, by]);
  if (!rows[0]) return undefined;
  const { was, changed, running, ...advanced } = rows[0];
  return { was, changed, running: running ?? [], advanced: advanced.n === null ? undefined : advanced };
}
