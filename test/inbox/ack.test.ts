// A parcel's life after the put: fetched, acked, expired; what can be read until when; what is removed, and what stays to
// be seen. The clock is the database's and is moved, not waited for.
import { beforeEach, describe, expect, test } from "vitest";
import { ContentCorrupt, NotFound, OptionInvalid } from "#src/errors.js";
import { CHUNK_BYTES } from "#src/inbox/put.js";
import { ackParcels } from "#src/store/inbox/ack.js";
import { collect as collectEvents } from "../support/events.ts";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { collect, purge, sha256, someBytes, someone, tablesOf } from "./scene.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  // Whatever the tests before left is over and gone.
  beforeEach(async () => {
    await bench.hf.clock.advance("25h");
    await purge(bench);
  });

  test("waiting, fetched, acked: each is seen with its time, and an ack counts once", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id } = await inbox.put("content");
    expect(await inbox.get(id)).toMatchObject({ state: "waiting", fetchedAt: null, fetchCount: 0, ackedAt: null });
    await (await inbox.open(id)).text();
    const fetched = (await inbox.get(id))!;
    expect(fetched).toMatchObject({ state: "fetched", fetchCount: 1, fetchedAt: expect.any(Date) as Date });
    await bench.hf.clock.advance("1m");
    await (await inbox.open(id)).text();
    const again = (await inbox.get(id))!;
    expect(again.fetchCount).toBe(2);
    expect(again.fetchedAt!.getTime()).toBeGreaterThan(fetched.fetchedAt!.getTime());
    expect(await inbox.ack(id)).toEqual({ id, again: false, gone: false });
    const acked = (await inbox.get(id))!;
    expect(acked).toMatchObject({ state: "acked", reason: null });
    await bench.hf.clock.advance("1m");
    expect(await inbox.ack(id)).toEqual({ id, again: true, gone: false });
    expect((await inbox.get(id))!.ackedAt).toEqual(acked.ackedAt);
    expect(await inbox.stats()).toMatchObject({ acked: 1, ackedBytes: 7 });
  });

  test("a part that was read is not a fetch, the last part is", async () => {
    const inbox = bench.hf.inbox(someone());
    const bytes = someBytes(2 * CHUNK_BYTES + 100);
    const { id } = await inbox.put(bytes);
    const ranges = [
      [0, 1],
      [5, CHUNK_BYTES + 5],
      [CHUNK_BYTES - 1, CHUNK_BYTES + 1],
      [CHUNK_BYTES, 2 * CHUNK_BYTES],
      [7, 7],
    ] as const;
    for (const [start, end] of ranges) {
      const got = await (await inbox.open(id, { start, end })).bytes();
      expect(got.equals(bytes.subarray(start, end))).toBe(true);
    }
    expect((await inbox.get(id))!.state).toBe("waiting");
    const rest = await (await inbox.open(id, { start: bytes.length - 50 })).bytes();
    expect(rest.equals(bytes.subarray(-50))).toBe(true);
    expect((await inbox.get(id))!.state).toBe("fetched");
    for (const range of [{ start: -1 }, { end: bytes.length + 1 }, { start: 5, end: 4 }, { start: 0.5 }, { from: 1 }]) {
      expect(await caught(async () => await inbox.open(id, range as object))).toBeInstanceOf(OptionInvalid);
    }
  });

  test("content is readable until an hour after the ack, and not a moment longer", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const { id } = await inbox.put("content");
    await inbox.ack(id);
    await bench.hf.clock.advance("59m");
    expect(await (await inbox.open(id)).text()).toBe("content");
    expect(await purge(bench)).toEqual({});
    await bench.hf.clock.advance("61s");
    expect(await caught(inbox.open(id))).toBeInstanceOf(NotFound);
    expect(await tablesOf(bench, recipient)).toMatchObject({ chunks: 1 });
    expect(await purge(bench)).toEqual({ acked: 1 });
    expect(await tablesOf(bench, recipient)).toMatchObject({ parcels: 1, chunks: 0 });
    expect(await inbox.get(id)).toMatchObject({ state: "acked", removedAt: expect.any(Date) as Date });
    // Swept meanwhile: it succeeds, and says so.
    expect(await inbox.ack(id)).toEqual({ id, again: true, gone: true });
  });

  test("an acked parcel is not readable beyond its expiry", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id, expiresAt } = await inbox.put("content", { ttl: "10m" });
    await inbox.ack(id);
    expect((await inbox.get(id))!.readableUntil).toEqual(expiresAt);
    await bench.hf.clock.advance("10m");
    expect(await caught(inbox.open(id))).toBeInstanceOf(NotFound);
    expect(await purge(bench)).toEqual({ acked: 1 });
  });

  test("a retention of zero, or below, removes at once what was acked, and nothing else", async () => {
    const inbox = bench.hf.inbox(someone());
    const [fresh, zero, negative] = [await inbox.put("1"), await inbox.put("2"), await inbox.put("3")];
    await ackParcels(bench.store, inbox.recipient, [zero.id], 0);
    await ackParcels(bench.store, inbox.recipient, [negative.id], -3_600_000);
    expect(await purge(bench)).toEqual({ acked: 2 });
    expect(await (await inbox.open(fresh.id)).text()).toBe("1");
  });

  test("a purge takes what is over, both sorts in one run, and leaves what is fresh or within its retention", async () => {
    const inbox = bench.hf.inbox(someone());
    const [fresh, kept, acked, unfetched, unacked] = [
      await inbox.put("1"),
      await inbox.put("2"),
      await inbox.put("3", { ttl: "10m" }),
      await inbox.put("4", { ttl: "10m" }),
      await inbox.put("5", { ttl: "10m" }),
    ];
    await inbox.ack(kept.id);
    await inbox.ack(acked.id);
    await (await inbox.open(unacked.id)).text();
    await bench.hf.clock.advance("11m");
    expect((await bench.hf.janitor.preview("purge-inbox"))[0]!.rows).toEqual({
      "never-fetched": 1,
      "never-acked": 1,
      acked: 1,
      drafts: 0,
    });
    expect(await purge(bench)).toEqual({ "never-fetched": 1, "never-acked": 1, acked: 1, expired: 2 });
    expect(await purge(bench)).toEqual({});
    expect((await inbox.get(unfetched.id))!).toMatchObject({ state: "expired", reason: "never fetched" });
    expect((await inbox.get(unacked.id))!).toMatchObject({ state: "expired", reason: "fetched, never acked" });
    expect(await (await inbox.open(fresh.id)).text()).toBe("1");
    expect(await (await inbox.open(kept.id)).text()).toBe("2");
    expect(await inbox.stats()).toMatchObject({
      waiting: 0,
      fetched: 1,
      acked: 2,
      neverFetched: 1,
      neverAcked: 1,
      expired: 2,
    });
  });

  test("expiry is an event, a tombstone and a job, not a silent deletion", async () => {
    const inbox = bench.hf.inbox(someone());
    const seen: unknown[] = [];
    const kind = makeKind({ run: (job) => void seen.push(job.payload) });
    const expired = collectEvents(bench.hf, "parcel.expired");
    const { id } = await inbox.put("content", {
      name: "a.txt",
      ttl: "10m",
      key: "k",
      meta: { chat: 7 },
      onExpired: { kind: kind.kind, payload: { tell: "ada" } },
    });
    await bench.hf.clock.advance("10m");
    // Over for everybody, also before the janitor comes by.
    expect(await inbox.get(id)).toMatchObject({ state: "expired", reason: "never fetched", removedAt: null });
    expect(await caught(inbox.open(id))).toBeInstanceOf(NotFound);
    expect(await caught(inbox.ack(id))).toBeInstanceOf(NotFound);
    expect(await caught(inbox.markFetched(id))).toBeInstanceOf(NotFound);
    expect((await inbox.list({ state: "waiting" })).parcels).toEqual([]);
    await purge(bench);
    expired.stop();
    expect(expired.events).toEqual([
      { parcelId: id, recipient: inbox.recipient, name: "a.txt", size: 7, reason: "never fetched" },
    ]);
    expect((await inbox.list({ state: "expired" })).parcels).toMatchObject([{ id, meta: { chat: 7 }, key: "k" }]);
    const [job] = (await bench.hf.jobs.list({ kind: kind.kind })).jobs;
    expect(job!.payload).toMatchObject({
      parcel: { id, recipient: inbox.recipient, name: "a.txt", size: 7, reason: "never fetched", meta: { chat: 7 } },
      payload: { tell: "ada" },
    });
    const worker = await bench.hf.work([kind]);
    await bench.hf.jobs.wait(job!.id, { timeout: "10s" });
    await worker.stop();
    expect(seen).toHaveLength(1);
    // The key stands for the parcel as long as its tombstone does.
    expect(await inbox.put("content", { key: "k" })).toMatchObject({ id, created: false, state: "expired" });
  });

  test("an ack that comes when the parcel has expired counts if it had been fetched, and says that it came late", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id } = await inbox.put("content", { ttl: "10m" });
    await (await inbox.open(id)).text();
    await bench.hf.clock.advance("10m");
    await purge(bench);
    expect(await inbox.ack(id)).toEqual({ id, again: false, gone: true });
    expect(await inbox.get(id)).toMatchObject({ state: "expired", ackedAt: expect.any(Date) as Date });
    expect(await inbox.stats()).toMatchObject({ acked: 0, neverAcked: 1 });
  });

  test("somebody else's parcel is as unknown as none", async () => {
    const mine = bench.hf.inbox(someone());
    const theirs = bench.hf.inbox(someone());
    const { id } = await mine.put("secret");
    const missing = "00000000-0000-7000-8000-000000000000";
    for (const call of [
      (of: string) => theirs.open(of),
      (of: string) => theirs.ack(of),
      (of: string) => theirs.markFetched(of),
    ]) {
      const [foreign, none] = [await caught(call(id)), await caught(call(missing))];
      expect(foreign).toBeInstanceOf(NotFound);
      expect(String(foreign).replace(id, missing)).toBe(String(none));
    }
    expect(await theirs.get(id)).toBeUndefined();
    expect(await mine.get(id)).toMatchObject({ state: "waiting" });
  });

  test("lists go by state and page by page, both ways", async () => {
    const inbox = bench.hf.inbox(someone());
    const put = await inbox.putMany(Array.from({ length: 7 }, (_, n) => ({ content: `${n}` })));
    const ids = put.map(({ id }) => id);
    await inbox.ack(ids[0]!);
    await (await inbox.open(ids[1]!)).text();
    const states = { waiting: ids.slice(2), fetched: [ids[1]], acked: [ids[0]], expired: [] } as const;
    for (const [state, expected] of Object.entries(states)) {
      const { parcels } = await inbox.list({ state: state as keyof typeof states });
      expect(parcels.map(({ id }) => id)).toEqual(expected);
    }
    for (const order of ["oldest", "newest"] as const) {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await inbox.list({ limit: 3, order, ...(cursor && { cursor }) });
        found.push(...page.parcels.map(({ id }) => id));
        cursor = page.next ?? undefined;
      } while (cursor);
      expect(found).toEqual(order === "oldest" ? ids : ids.toReversed());
    }
    for (const wrong of [{ state: "lost" }, { limit: 0 }, { limit: 501 }, { order: "up" }, { cursor: "x" }]) {
      expect(await caught(inbox.list(wrong as object))).toBeInstanceOf(OptionInvalid);
    }
  });

  test("content that is being read when its time ends is read to its end; new readers are refused", async () => {
    const inbox = bench.hf.inbox(someone());
    const bytes = someBytes(4 * CHUNK_BYTES);
    const { id } = await inbox.put(bytes, { ttl: "30s" });
    const stream = (await inbox.open(id)).stream();
    const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const first = (await iterator.next()).value as Buffer;
    await bench.hf.clock.advance("45s");
    expect(await purge(bench)).toEqual({});
    expect(await caught(inbox.open(id))).toBeInstanceOf(NotFound);
    const rest = await collect({ [Symbol.asyncIterator]: () => iterator });
    expect(sha256(Buffer.concat([first, rest]))).toBe(sha256(bytes));
    expect(await inbox.ack(id)).toMatchObject({ again: false, gone: false });
    expect((await inbox.stats()).acked).toBe(1);
  });

  test("what is removed while it is read is an error, not a shorter file", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id } = await inbox.put(someBytes(4 * CHUNK_BYTES));
    const stream = (await inbox.open(id)).stream();
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    await bench.db.query(`delete from "${bench.store.schema}".parcel_chunks where parcel_id = $1`, [id]);
    const rest = collect({ [Symbol.asyncIterator]: () => iterator as AsyncIterator<Buffer> });
    expect(await caught(rest)).toBeInstanceOf(NotFound);
    expect((await inbox.get(id))!.state).toBe("waiting");
  });

  test("bytes that changed in the database are not handed out as if they were right", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id } = await inbox.put(someBytes(CHUNK_BYTES + 10));
    await bench.db.query(
      `update "${bench.store.schema}".parcel_chunks set bytes = set_byte(bytes, 3, 255 - get_byte(bytes, 3))
       where parcel_id = $1 and n = 1`,
      [id],
    );
    expect(await caught((await inbox.open(id)).bytes())).toBeInstanceOf(ContentCorrupt);
    expect((await inbox.get(id))!.state).toBe("waiting");
  });

  test("a tombstone goes after its retention, and the recipient's counts after that", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    await inbox.put("content", { ttl: "1m" });
    await bench.hf.clock.advance("2m");
    await purge(bench);
    await bench.hf.clock.advance("29d");
    await purge(bench);
    expect(await tablesOf(bench, recipient)).toMatchObject({ parcels: 1 });
    await bench.hf.clock.advance("25h");
    expect(await purge(bench)).toMatchObject({ tombstones: expect.any(Number) as number });
    expect(await tablesOf(bench, recipient)).toMatchObject({ parcels: 0 });
    expect((await bench.hf.inboxes.list({ limit: 100 })).inboxes.map((i) => i.recipient)).not.toContain(recipient);
  });
});
