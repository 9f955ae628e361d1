// Removes the content of a parcel that was acked, in the commit of the ack: what was handed back to the owner of a batch is
// the owner's alone from then on. What is left is the tombstone.
import { routine, type Store } from "../sql.ts";

const REMOVE = routine({
  name: "remove_content",
  takes: ["text", "uuid"],
  gives: "count",
  body: `with parcel as (
  update :schema.parcels p set removed_at = :schema.clock(), gone_at = least(p.gone_at, :schema.clock())
  where p.id = $2 and p.recipient = $1 and p.acked_at is not null and p.removed_at is null
  returning p.id
)
delete from :schema.parcel_chunks c using parcel p where c.parcel_id = p.id`,
});

export async function removeContent(store: Store, recipient: string, parcelId: string): Promise<void> {
  await store.query(REMOVE, [recipient, parcelId]);
}
