// Every statement of the inbox uses its index and reads a bounded number of rows, with hundreds of thousands of tombstones
// around and never analysed. The plans are those that really ran: auto_explain hands them over as notices.
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { uuidv7 } from "#src/shared/uuid.js";
import { ackParcels } from "#src/store/inbox/ack.js";
import { deliver } from "#src/store/inbox/deliver.js";
import { beginDraft, writeChunk } from "#src/store/inbox/draft.js";
import { expireParcels } from "#src/store/inbox/expire.js";
import { listParcels } from "#src/store/inbox/list.js";
import { markFetched } from "#src/store/inbox/mark-fetched.js";
import { notePoll } from "#src/store/inbox/note-poll.js";
import { forgetInboxes, purgeContent, purgeDrafts, purgeTombstones } from "#src/store/inbox/purge.js";
import { openParcel, readChunk, readParcel } from "#src/store/inbox/read.js";
import { listInboxes, readInbox } from "#src/store/inbox/stats.js";
import { holdParcel, takeParcels } from "#src/store/inbox/take.js";
import type { Store } from "#src/store/sql.js";
import { useHoldfast } from "../support/open-test.ts";

const TOMBSTONES = 200_000;
const WATCHED = /^(parcels|parcel_drafts|parcel_chunks|inboxes)$/;

interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Actual Rows"?: number;
  "Actual Loops"?: number;
  "Rows Removed by Filter"?: number;
  Plans?: PlanNode[];
}

const bench = useHoldfast("server");
let client: Client;
let store: Store;
let plans: PlanNode[] = [];
/** A parcel that waits for "r5". */
let id: string;

beforeAll(async () => {
  const schema = `"${bench.store.schema}"`;
  client = new Client({ connectionString: bench.url });
  await client.connect();
  await client.query(`
    insert into ${schema}.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name, key,
      acked_at, removed_at)
    select gen_random_uuid(), 'r' || n % 50, now(), now() + interval '1 day', now() + interval '1 hour', 10, 10,
      decode(repeat('00', 32), 'hex'), 'x', 'k' || n, now(), now() from generate_series(1, ${TOMBSTONES}) n;
    insert into ${schema}.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name)
    select gen_random_uuid(), 'r' || n % 50, now(), now() + interval '1 day', now() + interval '1 day', 10, 10,
      decode(repeat('00', 32), 'hex'), 'x' from generate_series(1, 2000) n;
    insert into ${schema}.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name, acked_at)
    select gen_random_uuid(), 'old', now() - interval '2 days', now() - interval '1 day', now() - interval '1 day', 10, 10,
      decode(repeat('00', 32), 'hex'), 'x', case when n % 2 = 0 then now() - interval '2 days' end
    from generate_series(1, 2000) n;
    insert into ${schema}.parcel_chunks select id, 0, '0123456789' from ${schema}.parcels where removed_at is null;
    insert into ${schema}.parcel_drafts select gen_random_uuid(), 'r' || n % 50, now() - n * interval '1 second', 10
    from generate_series(1, 5000) n;
    insert into ${schema}.inboxes (recipient, touched_at, acked_count)
    select 'r' || n, now(), ${TOMBSTONES} from generate_series(1, 5000) n`);
  const { rows } = await client.query<{ id: string }>(
    `select id from ${schema}.parcels where recipient = 'r5' and acked_at is null limit 1`,
  );
  ({ id } = rows[0]!);
  client.on("notice", ({ message = "" }) => {
    if (message.includes("plan:"))
      plans.push((JSON.parse(message.slice(message.indexOf("{"))) as { Plan: PlanNode }).Plan);
  });
  await client.query(`
    load 'auto_explain';
    set auto_explain.log_min_duration = 0;
    set auto_explain.log_nested_statements = on;
    set auto_explain.log_analyze = on;
    set auto_explain.log_timing = off;
    set auto_explain.log_format = 'json';
    set auto_explain.log_level = 'notice';
    set client_min_messages = 'notice'`);
  store = bench.store.on({
    query: async <Row>(text: string, values: readonly unknown[] = []) => {
      const answer = await client.query({ text, values: [...values] });
      return { rows: answer.rows as Row[], rowCount: answer.rowCount ?? 0 };
    },
  });
});
afterAll(() => client?.end());

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)];

function rowsOf(node: PlanNode): number {
  if (node["Node Type"] === "ModifyTable") return 0;
  return Math.ceil(((node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0)) * (node["Actual Loops"] ?? 1));
}

const draft = { recipient: "r5", key: "new", size: 10, quotaBytes: 1e9, quotaParcels: 1e6 };

/** 40 parcels are open for "r5", beside 4,000 tombstones; 100 drafts are on their way. */
const VERBS: [name: string, most: number, run: () => Promise<unknown>][] = [
  ["begin a draft", 200, () => beginDraft(store, { ...draft, id: uuidv7() }, false)],
  [
    "write a chunk and deliver",
    300,
    async () => {
      const fresh = uuidv7();
      await beginDraft(store, { ...draft, id: fresh }, false);
      await writeChunk(store, { draftId: fresh, n: 0, bytes: Buffer.alloc(10), written: 10 }, true);
      const parcel = { id: fresh, name: "x", type: "", size: 10, sha256: "00".repeat(32), chunks: 1, chunkBytes: 10 };
      const parcels = [{ ...parcel, ttlMs: 1_000, key: "new", meta: null, onExpired: null }];
      await deliver(store, { recipient: "r5", quotaBytes: 1e9, quotaParcels: 1e6, parcels }, false);
    },
  ],
  ["read", 1, () => readParcel(store, "r5", id)],
  ["open", 1, () => openParcel(store, "r5", id)],
  ["read a chunk", 1, () => readChunk(store, id, 0)],
  ["take one", 60, () => takeParcels(store, "r5", 1, 1_000)],
  ["hold", 2, () => holdParcel(store, "r5", id, 1_000)],
  ["mark fetched", 4, () => markFetched(store, "r5", id)],
  ["ack", 6, () => ackParcels(store, "r5", [id], 0)],
  ["note a poll", 2, () => notePoll(store, "r5")],
  [
    "list what waits",
    60,
    () => listParcels(store, { recipient: "r5", states: ["waiting"], order: "oldest", limit: 20 }),
  ],
  [
    "list all",
    60,
    () => listParcels(store, { recipient: "r5", states: ["acked", "waiting"], order: "newest", limit: 20 }),
  ],
  ["expire", 600, () => expireParcels(store, 100)],
  ["purge content", 800, () => purgeContent(store, { parcels: 100, chunks: 50 })],
  ["purge drafts", 800, () => purgeDrafts(store, 60_000, { parcels: 100, chunks: 50 })],
  ["purge tombstones", 400, () => purgeTombstones(store, 0, 100)],
  ["forget inboxes", 400, () => forgetInboxes(store, -60_000, 100)],
  ["stats of one", 100, () => readInbox(store, "r5")],
  ["stats of a page", 1_500, () => listInboxes(store, "r", 10)],
];

test.each(VERBS)("%s reads at most %i rows, by index", async (_, most, run) => {
  await client.query("begin");
  plans = [];
  try {
    await run();
  } finally {
    await client.query("rollback");
  }
  const nodes = plans.flatMap(flatten).filter((node) => WATCHED.test(node["Relation Name"] ?? ""));
  const lines = nodes.map((node) => `${node["Node Type"]} on ${node["Relation Name"]}: ${rowsOf(node)}`);
  expect(lines.filter((line) => /^Seq Scan.*: [1-9]/.test(line))).toEqual([]);
  const read = nodes.reduce((sum, node) => sum + rowsOf(node), 0);
  expect(nodes.length).toBeGreaterThan(0);
  expect(read, lines.join("; ")).toBeLessThanOrEqual(most);
});
