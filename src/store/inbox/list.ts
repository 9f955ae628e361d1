// Lists a recipient's parcels page by page. Ids are UUIDv7: their order is the order of arrival, and the last id of a
// page is the cursor of the next.
import { routine, type Routine, type Store } from "../sql.ts";
import {
  type Parcel,
  PARCEL_COLUMNS,
  PARCEL_SHAPE,
  type ParcelRow,
  type ParcelState,
  stateOf,
  toParcel,
} from "./rows.ts";

export interface ParcelFilter {
  recipient: string;
  states: readonly ParcelState[];
  order: "oldest" | "newest";
  /** Only parcels behind this one, in the order asked for. */
  after?: string | undefined;
  limit: number;
}

const FORWARD = `p.id > $3 order by p.id limit $4`;
const BACKWARD = `p.id < $3 order by p.id desc limit $4`;
/** Served by the index of what is open, however many tombstones there are. */
const IS_OPEN = `p.acked_at is null and p.expired_at is null and`;

const listing = (name: string, which: string): Routine =>
  routine({
    name,
    takes: ["text", "text[]", "uuid", "integer"],
    gives: PARCEL_SHAPE,
    body: `select ${PARCEL_COLUMNS} from :schema.parcels p
where p.recipient = $1 and ${stateOf("p")} = any($2) and ${which}`,
  });

const OLDEST = listing("list_parcels", FORWARD);
const NEWEST = listing("list_newest_parcels", BACKWARD);
const OLDEST_OPEN = listing("list_open_parcels", `${IS_OPEN} ${FORWARD}`);
const NEWEST_OPEN = listing("list_newest_open_parcels", `${IS_OPEN} ${BACKWARD}`);

const OPEN_STATES: readonly ParcelState[] = ["waiting", "fetched"];
const BEFORE_ALL = "00000000-0000-0000-0000-000000000000";
const AFTER_ALL = "ffffffff-ffff-ffff-ffff-ffffffffffff";

export async function listParcels(store: Store, filter: ParcelFilter): Promise<Parcel[]> {
  const { recipient, states, order, limit } = filter;
  const isOpen = states.every((state) => OPEN_STATES.includes(state));
  const statement = order === "oldest" ? (isOpen ? OLDEST_OPEN : OLDEST) : isOpen ? NEWEST_OPEN : NEWEST;
  const after = filter.after ?? (order === "oldest" ? BEFORE_ALL : AFTER_ALL);
  const { rows } = await store.query<ParcelRow>(statement, [recipient, states, after, limit]);
  return rows.map(toParcel);
}
