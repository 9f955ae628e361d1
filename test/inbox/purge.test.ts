// Cleaning up is bounded: ten thousand parcels go in steps of bounded rows and bytes, one large file in several; a
// failure of one run is not the end of the next; recipients that do not come are noticed, with the reason.
import { describe, expect, test } from "vitest";
import { makeInboxChore } from "#src/inbox/chore.js";
import { CHUNK_BYTES } from "#src/inbox/put.js";
import { makeJanitor } from "#src/janitor/janitor.js";
import type { HoldfastEvents } from "#src/metrics/events.js";
import { resolveInboxOptions } from "#src/options/inbox.js";
import { makeEmitter } from "#src/shared/emitter.js";
import { ackParcels } from "#src/store/inbox/ack.js";
import { expireParcels } from "#src/store/inbox/expire.js";
import { purgeContent } from "#src/store/inbox/purge.js";
import { collect as collectEvents } from "../support/events.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { purge, someBytes, someone, tablesOf } from "./scene.ts";

const MANY = 10_000;

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier, { inbox: { stuckAfter: "10m" } });

  test(
    "ten thousand parcels go in bounded steps, each expiry is an event, and nothing is left",
    { timeout: 120_000 },
    async () => {
      const recipient = someone();
      const schema = `"${bench.store.schema}"`;
      // As ten thousand puts would have left them, in one statement: putting them takes longer than the test may.
      await bench.db.query(
        `with made as (
        insert into ${schema}.parcels (id, recipient, created_at, expires_at, gone_at, size, chunk_bytes, sha256, name,
          fetched_at, acked_at)
        select gen_random_uuid(), $1, c.now, c.now + interval '1 minute', c.now + interval '1 minute', 100, ${CHUNK_BYTES},
          decode(repeat('00', 32), 'hex'), 'x', case when n % 4 in (1, 2) then c.now end, case when n % 4 = 2 then c.now end
        from generate_series(1, ${MANY}) n, (select ${schema}.clock() as now) c returning id)
      insert into ${schema}.parcel_chunks (parcel_id, n, bytes) select id, 0, decode(repeat('ab', 100), 'hex') from made`,
        [recipient],
      );
      await bench.db.query(
        `insert into ${schema}.inboxes (recipient, touched_at, acked_count) values ($1, ${schema}.clock(), ${MANY / 4})`,
        [recipient],
      );
      await bench.hf.clock.advance("2m");
      const expired = collectEvents(bench.hf, "parcel.expired");
      const rows: Record<string, number> = {};
      let longest = 0;
      for (let runs = 0; (await tablesOf(bench, recipient)).chunks > 0; runs += 1) {
        expect(runs).toBeLessThan(20);
        const [result] = await bench.hf.janitor.run("purge-inbox");
        if (!result?.ran || result.error !== null) throw new Error(JSON.stringify(result));
        for (const [name, count] of Object.entries(result.rows)) rows[name] = (rows[name] ?? 0) + count;
        longest = Math.max(longest, result.tookMs);
      }
      expired.stop();
      expect(rows).toEqual({ "never-fetched": 5_000, "never-acked": 2_500, acked: 2_500, expired: 7_500 });
      expect(longest).toBeLessThan(30_000);
      expect(expired.events).toHaveLength(7_500);
      expect(await tablesOf(bench, recipient)).toEqual({ parcels: MANY, drafts: 0, chunks: 0, orphans: 0 });
      expect(await bench.hf.inbox(recipient).stats()).toMatchObject({
        neverFetched: 5_000,
        neverAcked: 2_500,
        waiting: 0,
      });
    },
  );

  test("a statement touches no more rows and bytes than it is told, and a large file goes in several", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const large = await inbox.put(someBytes(10 * CHUNK_BYTES), { ttl: "1m" });
    for (let n = 0; n < 5; n += 1) await inbox.put("x", { ttl: "1m" });
    await bench.hf.clock.advance("2m");
    expect(await expireParcels(bench.store, 4)).toHaveLength(4);
    expect(await expireParcels(bench.store, 4)).toHaveLength(2);
    const steps = [];
    for (;;) {
      const step = await purgeContent(bench.store, { parcels: 100, chunks: 4 });
      if (step.chunks === 0) break;
      expect(step.chunks).toBeLessThanOrEqual(4);
      expect(step.bytes).toBeLessThanOrEqual(4 * CHUNK_BYTES);
      steps.push(step);
    }
    expect(steps.length).toBe(4);
    expect(steps.reduce((sum, { expired }) => sum + expired, 0)).toBe(6);
    expect((await inbox.get(large.id))!.removedAt).toBeInstanceOf(Date);
  });

  test("two purges at the same time remove each thing once", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    for (let n = 0; n < 40; n += 1) await inbox.put("x", { ttl: "1m" });
    await bench.hf.clock.advance("2m");
    const expired = (await Promise.all(Array.from({ length: 6 }, () => expireParcels(bench.store, 10)))).flat();
    expect(new Set(expired.map(({ id }) => id)).size).toBe(expired.length);
    await purge(bench);
    expect(await inbox.stats()).toMatchObject({ neverFetched: 40 });
    expect(await tablesOf(bench, recipient)).toMatchObject({ chunks: 0 });
  });

  test("a run that had no time for all of it says that something is left", async () => {
    const schema = `"${bench.store.schema}"`;
    // More than one statement takes.
    await bench.db.query(
      `insert into ${schema}.parcel_drafts (id, recipient, touched_at, size)
       select gen_random_uuid(), $1, ${schema}.clock() - interval '1 year', 1 from generate_series(1, 501)`,
      [someone()],
    );
    const events = makeEmitter<HoldfastEvents>(() => {});
    const chore = makeInboxChore({ store: bench.store, limits: resolveInboxOptions(), events, onFollowed() {} });
    const janitor = makeJanitor({ store: bench.store, events, chores: [{ ...chore, budgetMs: 0 }] });
    expect(await janitor.run(chore.name)).toMatchObject([
      { ran: true, error: null, rows: { drafts: 500 }, more: true },
    ]);
    expect(await janitor.run(chore.name)).toMatchObject([{ ran: true, error: null, rows: { drafts: 1 }, more: false }]);
  });

  test("a run that fails is told and the next one does the work", async () => {
    const inbox = bench.hf.inbox(someone());
    const schema = `"${bench.store.schema}"`;
    await inbox.put("x", { ttl: "1m" });
    await bench.hf.clock.advance("2m");
    await bench.db.query(`alter table ${schema}.parcel_chunks rename to away`);
    const [failed] = await bench.hf.janitor.run("purge-inbox");
    await bench.db.query(`alter table ${schema}.away rename to parcel_chunks`);
    expect(failed).toMatchObject({ ran: true, error: expect.stringContaining("parcel_chunks") as string });
    expect((await purge(bench))["expired"]).toBe(1);
  });

  test("the janitor begins with it when it starts", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    await inbox.put("x", { ttl: "1m" });
    await bench.hf.clock.advance("2m");
    const ran = new Promise<void>((resolve) => {
      bench.hf.on("parcel.expired", (event) => event.recipient === recipient && resolve());
    });
    await bench.hf.janitor.start();
    await ran;
    expect((await inbox.stats()).neverFetched).toBe(1);
    const chore = bench.hf.janitor.chores.find(({ name }) => name === "purge-inbox");
    expect(chore).toMatchObject({ everyMs: 300_000, deadlineMs: 30_000 });
  });

  test("a recipient that does not come, does not fetch or does not ack is noticed, with the reason", async () => {
    const inbox = bench.hf.inbox(someone());
    await inbox.put("x");
    expect((await inbox.stats()).stuck).toBeNull();
    await bench.hf.clock.advance("11m");
    expect((await inbox.stats()).stuck).toMatchObject({ code: "not polling", message: "has never polled" });
    const told = collectEvents(bench.hf, "inbox.stuck");
    await purge(bench);
    await purge(bench);
    told.stop();
    expect(told.events.filter(({ recipient }) => recipient === inbox.recipient)).toMatchObject([
      { code: "not polling", message: "has never polled" },
    ]);
    const figures = await bench.hf.inboxes.figures();
    expect(figures).toMatchObject({ more: false });
    expect(figures.oldestWaitingMs).toBeGreaterThan(660_000 - 1);
    await inbox.arrival({ timeoutMs: 0 });
    await expect
      .poll(async () => (await inbox.stats()).stuck)
      .toMatchObject({ code: "not fetching", message: "polls but does not fetch" });
    await bench.hf.clock.advance("11m");
    const { stuck, polledAt } = await inbox.stats();
    const since = polledAt!.toISOString().slice(0, 16).replace("T", " ");
    expect(stuck).toMatchObject({ code: "not polling", message: `has not polled since ${since} UTC` });
    const [parcel] = (await inbox.list()).parcels;
    await (await inbox.open(parcel!.id)).text();
    expect((await inbox.stats()).stuck).toBeNull();
    await bench.hf.clock.advance("11m");
    expect((await inbox.stats()).stuck).toMatchObject({ code: "not acking", message: "fetches but never acks" });
    await inbox.ack(parcel!.id);
    expect((await inbox.stats()).stuck).toBeNull();
  });

  test("inboxes are listed by name, page by page, with what each holds", async () => {
    const names = ["zz.a", "zz.b", "zz.c"].map((stem) => `${stem}.${someone()}`);
    for (const [n, name] of names.entries()) {
      await bench.hf.inbox(name).putMany(Array.from({ length: n + 1 }, () => ({ content: "12345" })));
    }
    const found: Record<string, number> = {};
    let cursor: string | undefined = "zz";
    do {
      const page: Awaited<ReturnType<typeof bench.hf.inboxes.list>> = await bench.hf.inboxes.list({ limit: 2, cursor });
      for (const { recipient, bytes } of page.inboxes) found[recipient] = bytes;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(found).toEqual({ [names[0]!]: 5, [names[1]!]: 10, [names[2]!]: 15 });
  });
});

describe("embedded", () => {
  const bench = useHoldfast("embedded");

  test("the room of files that are gone is used again", { timeout: 60_000 }, async () => {
    const inbox = bench.hf.inbox(someone());
    const sizes: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const { id } = await inbox.put(someBytes(80 * CHUNK_BYTES));
      await ackParcels(bench.store, inbox.recipient, [id], 0);
      await purge(bench);
      await bench.hf.janitor.run("vacuum");
      const { rows } = await bench.db.query<{ bytes: string }>(
        `select pg_total_relation_size('"${bench.store.schema}".parcel_chunks') as bytes`,
      );
      sizes.push(Number(rows[0]!.bytes));
    }
    expect(sizes[5]).toBeLessThan(sizes[1]! * 1.5);
  });
});
