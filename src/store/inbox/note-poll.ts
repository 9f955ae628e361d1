// When a recipient last asked for its parcels. Written at most every few seconds, and without waiting for the disk.
import { routine, type Store } from "../sql.ts";

const NOTE = routine({
  name: "note_poll",
  takes: ["text"],
  gives: "void",
  first: `perform set_config('synchronous_commit', 'off', true);`,
  body: `insert into :schema.inboxes as i (recipient, touched_at, polled_at) values ($1, :schema.clock(), :schema.clock())
on conflict (recipient) do update set touched_at = excluded.touched_at, polled_at = excluded.polled_at
where i.polled_at is null or i.polled_at < excluded.polled_at - interval '2 seconds'`,
});

export async function notePoll(store: Store, recipient: string): Promise<void> {
  await store.query(NOTE, [recipient]);
}
