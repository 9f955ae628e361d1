// What a consumer is given: the oldest open parcels that nobody else is busy with. The hold is a courtesy between
// consumers of one inbox and a promise of the janitor not to remove what is being read; it ends by itself, so that a
// consumer that died keeps nothing. It is bounded: nobody keeps content for ever by reading it slowly.
import { routine, sql, type Store } from "../sql.ts";
import { type Parcel, PARCEL_COLUMNS, PARCEL_SHAPE, type ParcelRow, toParcel } from "./rows.ts";

const UNTIL = (ms: string): string =>
  `least(:schema.clock() + ${ms} * interval '1 millisecond', p.expires_at + interval '1 hour')`;

const TAKE = routine({
  name: "take_parcels",
  takes: ["text", "integer", "bigint"],
  gives: PARCEL_SHAPE,
  body: `with due as materialized (
  select p.id from :schema.parcels p
  where p.recipient = $1 and p.acked_at is null and p.expired_at is null and p.gone_at > :schema.clock()
    and (p.held_until is null or p.held_until <= :schema.clock())
  order by p.id limit $2 for update skip locked
),
held as (
  update :schema.parcels p set held_until = ${UNTIL("$3")}
  where p.id = any(array(select id from due)) returning p.*
)
select ${PARCEL_COLUMNS} from held p order by p.id`,
});

export async function takeParcels(store: Store, recipient: string, limit: number, holdMs: number): Promise<Parcel[]> {
  const { rows } = await store.query<ParcelRow>(TAKE, [recipient, limit, holdMs]);
  return rows.map(toParcel);
}

const MINE = `p.id = $1::uuid and p.recipient = $2 and p.removed_at is null`;

const HOLD = sql`
update :schema.parcels p set held_until = greatest(p.held_until, ${UNTIL("$3::bigint")}) where ${MINE}`;

/** At least so long from now. */
export async function holdParcel(store: Store, recipient: string, id: string, holdMs: number): Promise<void> {
  await store.query(HOLD, [id, recipient, holdMs]);
}

const LEAVE = sql`update :schema.parcels p set held_until = ${UNTIL("$3::bigint")} where ${MINE}`;

/** Back for anybody, after a pause. */
export async function leaveParcel(store: Store, recipient: string, id: string, pauseMs: number): Promise<void> {
  await store.query(LEAVE, [id, recipient, pauseMs]);
}
