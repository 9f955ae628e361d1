// Looks for work without taking any: no locks, no writes.
//
// `lookAhead` is cheap however much lies dead behind the watermarks: which lanes have something due, when the next
// thing is due, ranks nobody has seen yet, suspects. `lookBack` finds what landed behind a watermark (a late commit, a
// release, a clock that jumped); under a held snapshot it walks the dead, so its caller gives it a budget.
import { asMicros, asMillis, bounded, fromMicros, routine, type Store } from "../sql.ts";
import type { LanePosition } from "./claim.ts";
import { IS_KIND } from "./lane.ts";
import { LIGHT_IDS } from "./mark.ts";

export interface Sight {
  what: "lane" | "new" | "suspect" | "behind";
  kind: string;
  rank: number;
  id: string | null;
  run_us: string | null;
  /** Milliseconds until it is due; zero or less: now. */
  due_ms: number;
}

/** Ranks strictly between lo and hi that no lane covers. */
export interface Gap {
  kind: string;
  lo: number;
  hi: number;
}

const DUE_MS = asMillis(`${bounded("j.run_at")} - :schema.clock()`);

/** Of lanes `l`, the first `limit` jobs that are due behind their watermarks. */
const BEHIND = (limit: string): string => `cross join lateral (
  select j.id, j.rank, j.run_at from :schema.jobs j
  where j.hold = 0 and ${IS_KIND("l.kind")} and j.rank = l.rank and j.run_at <= :schema.clock()
    and (j.run_at, j.id) < (${fromMicros("l.from_us")}, l.from_id) and j.state = 'pending' and j.id not in ${LIGHT_IDS}
  order by j.run_at, j.id limit ${limit}
) j
order by j.rank, j.run_at, j.id limit ${limit}`;

const LOOK_AHEAD = routine({
  name: "look_ahead",
  takes: ["text", "text", "text[]", "integer"],
  gives: "what text, kind text, rank smallint, id uuid, run_us bigint, due_ms double precision",
  body: `with lanes as materialized (
  select * from jsonb_to_recordset($1::jsonb) as l (kind text, rank smallint, from_us bigint, from_id uuid)
),
gaps as materialized (
  select * from jsonb_to_recordset($2::jsonb) as g (kind text, lo smallint, hi smallint)
)
select 'lane' as what, l.kind, l.rank, j.id, ${asMicros("j.run_at")} as run_us, ${DUE_MS} as due_ms
from lanes l cross join lateral (
  select j.id, j.run_at from :schema.jobs j
  where j.hold = 0 and ${IS_KIND("l.kind")} and j.rank = l.rank
    and (j.run_at, j.id) >= (${fromMicros("l.from_us")}, l.from_id) and j.state = 'pending' and j.id not in ${LIGHT_IDS}
  order by j.run_at, j.id limit 1
) j
union all
select 'new', g.kind, j.rank, j.id, ${asMicros("j.run_at")}, ${DUE_MS}
from gaps g cross join lateral (
  select j.rank, j.id, j.run_at from :schema.jobs j
  where j.hold = 0 and ${IS_KIND("g.kind")} and j.rank > g.lo and j.rank < g.hi
  order by j.rank, j.run_at, j.id limit 1
) j
union all
select 'suspect', j.kind, 0::smallint, j.id, ${asMicros("j.run_at")}, ${DUE_MS}
from unnest($3::text[]) as k (kind) cross join lateral (
  select j.kind, j.id, j.run_at from :schema.jobs j
  where j.hold = 2 and j.kind = k.kind and j.state = 'pending' order by j.run_at limit 1
) j
union all
(select 'behind', l.kind, j.rank, j.id, ${asMicros("j.run_at")}, ${DUE_MS} from lanes l ${BEHIND("$4")})`,
});

const LOOK_BACK = routine({
  name: "look_back",
  takes: ["text", "integer"],
  gives: "kind text, rank smallint, id uuid, run_us bigint",
  body: `select l.kind, j.rank, j.id, ${asMicros("j.run_at")} from jsonb_to_recordset($1::jsonb) as l (kind text, rank smallint, from_us bigint, from_id uuid)
${BEHIND("$2")}`,
});

const lanesJson = (lanes: readonly LanePosition[]): string =>
  JSON.stringify(
    lanes.map((lane) => ({ kind: lane.kind, rank: lane.rank, from_us: lane.fromUs, from_id: lane.fromId })),
  );

/** `behind`: also up to so many of what `lookBack` finds, in the same statement. */
export async function lookAhead(
  store: Store,
  lanes: readonly LanePosition[],
  gaps: readonly Gap[],
  kinds: readonly string[],
  behind = 0,
): Promise<Sight[]> {
  return (await store.query<Sight>(LOOK_AHEAD, [lanesJson(lanes), JSON.stringify(gaps), kinds, behind])).rows;
}

export interface LeftBehind {
  kind: string;
  rank: number;
  id: string;
  run_us: string;
}

export async function lookBack(store: Store, lanes: readonly LanePosition[], limit: number): Promise<LeftBehind[]> {
  return (await store.query<LeftBehind>(LOOK_BACK, [lanesJson(lanes), limit])).rows;
}
