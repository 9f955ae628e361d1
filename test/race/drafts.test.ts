// Two connections, real locks: a delivery and a purge that are at the same draft. A parcel that was acknowledged has all of
// its bytes.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { uuidv7 } from "#src/shared/uuid.js";
import { deliver, type DeliverResult } from "#src/store/inbox/deliver.js";
import { beginDraft, writeChunk } from "#src/store/inbox/draft.js";
import { purgeDrafts } from "#src/store/inbox/purge.js";
import type { Store } from "#src/store/sql.js";
import type { Session } from "../support/locks.ts";
import { type Arena, openArena, SCHEMA } from "./arena.ts";

const QUOTA = { quotaBytes: 1e9, quotaParcels: 1e3 };
const RECIPIENT = "ada";

let arena: Arena;
let other: Session;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
});
afterAll(() => arena.close());

/** A draft of three chunks that nobody has touched for two hours. */
async function oldDraft(): Promise<string> {
  const id = uuidv7();
  await beginDraft(arena.store, { id, recipient: RECIPIENT, key: null, size: 3, ...QUOTA }, true);
  for (const [n, text] of ["a", "b", "c"].entries()) {
    await writeChunk(arena.store, { draftId: id, n, bytes: Buffer.from(text), written: n + 1 }, true);
  }
  const text = `update ${SCHEMA}.parcel_drafts set touched_at = now() - interval '2 hours' where id = $1`;
  await arena.watcher.query(text, [id]);
  return id;
}

const put = (id: string): Promise<DeliverResult> => {
  const sha256 = createHash("sha256").update("abc").digest("hex");
  const parcel = { id, name: "file", type: "text/plain", size: 3, sha256, chunks: 3, chunkBytes: 1, ttlMs: 1e7 };
  const parcels = [{ ...parcel, key: null, meta: null, onExpired: null }];
  return deliver(arena.store, { recipient: RECIPIENT, parcels, ...QUOTA }, true);
};
/** A file that is larger than one statement of the purge takes goes in several. */
const purgeOne = (store: Store) => purgeDrafts(store, 3_600_000, { parcels: 500, chunks: 1 });
const left = async (id: string): Promise<number> =>
  (await arena.watcher.query(`select 1 from ${SCHEMA}.parcel_chunks where parcel_id = $1`, [id])).rows.length;

test("a delivery that waits for a purge of a part of its draft is refused, and acknowledges nothing that lacks chunks", async () => {
  const id = await oldDraft();
  await other.begin();
  expect(await purgeOne(other.store(SCHEMA))).toMatchObject({ drafts: 0, chunks: 1 });
  const delivering = put(id);
  await arena.blocks(other);
  await other.commit();
  expect(await delivering).toEqual({ lost: ["file"] });
  expect(await left(id)).toBe(2);
});

test("a delivery that waits for a purge that is rolled back is whole", async () => {
  const id = await oldDraft();
  await other.begin();
  await purgeDrafts(other.store(SCHEMA), 3_600_000, { parcels: 500, chunks: 10 });
  const delivering = put(id);
  await arena.blocks(other);
  await other.rollback();
  expect(await delivering).toMatchObject({ delivered: [{ id, created: true }] });
  expect(await left(id)).toBe(3);
});
