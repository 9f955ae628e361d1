// Calls made at the same time share statements; each promise is about its own row.
import { Client } from "pg";
import { describe, expect, test, vi } from "vitest";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

/** Not so many that they are copied in. */
const MANY = 180;

describe.each(TIERS)("calls at the same time, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("share statements, and each gets the id of its own row", async () => {
    const kind = makeKind<{ n: number }>();
    const query = vi.spyOn(bench.db, "query");
    const results = await Promise.all(
      Array.from({ length: MANY }, async (_, n) => ({ n, ...(await bench.hf.enqueue(kind, { n })) })),
    );
    const inserts = query.mock.calls.filter(([text]) => text.includes(".insert_"));
    query.mockRestore();
    expect(inserts.length).toBeGreaterThan(0);
    expect(inserts.length).toBeLessThan(MANY / 10);
    expect(new Set(results.map(({ id }) => id)).size).toBe(MANY);
    const page = await bench.hf.jobs.list({ kind: kind.kind, limit: 500 });
    const payloads = new Map(page.jobs.map((job) => [job.id, job.payload]));
    for (const { id, n } of results) expect(payloads.get(id)).toEqual({ n });
  });

  test("one whose payload is refused fails alone", async () => {
    const kind = makeKind();
    const payloads = [1, 2, NaN, 4, "a\0"];
    const results = await Promise.allSettled(payloads.map((payload) => bench.hf.enqueue(kind, payload)));
    expect(results.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
    ]);
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(3);
  });

  test.each([["plain"], ["keyed"]])("one that the database refuses fails alone: %s", async (how) => {
    const kind = makeKind();
    // Nothing that passes our own checks is known to be refused by Postgres: make it refuse something.
    await bench.db.script(
      `alter table holdfast.jobs add constraint refuse_it check (payload <> '"poison"'::jsonb) not valid`,
    );
    const payloads = Array.from({ length: 40 }, (_, n) => (n === 17 ? "poison" : `${n}`));
    const results = await Promise.allSettled(
      payloads.map((payload) => bench.hf.enqueue(kind, payload, how === "keyed" ? { key: payload } : {})),
    );
    await bench.db.script("alter table holdfast.jobs drop constraint refuse_it");
    expect(results.flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([17]);
    const stored = (await bench.hf.jobs.list({ kind: kind.kind, limit: 100 })).jobs.map((job) => String(job.payload));
    expect(stored.toSorted()).toEqual(payloads.filter((payload) => payload !== "poison").toSorted());
  });

  test("with the same key are one job", async () => {
    const kind = makeKind();
    const results = await Promise.all(
      Array.from({ length: 60 }, () => bench.hf.enqueue(kind, { same: true }, { key: "k" })),
    );
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(results.map(({ id }) => id)).size).toBe(1);
    expect(results.some(({ conflict }) => conflict)).toBe(false);
  });

  test("with the same coalesce key are one job, with the payload of the last", async () => {
    const kind = makeKind();
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => bench.hf.enqueue(kind, { n }, { coalesce: "doc" })),
    );
    expect(new Set(results.map(({ id }) => id)).size).toBe(1);
    expect(results.filter(({ created }) => created)).toHaveLength(1);
    expect((await bench.hf.jobs.get(results[0]!.id))?.payload).toEqual({ n: 19 });
  });

  test("with the same coalesce key are one job with the payload of the last, also of one that came during the first", async () => {
    for (let round = 0; round < 10; round += 1) {
      const kind = makeKind<number>();
      const calls = [1, 2].map((n) => bench.hf.enqueue(kind, n, { coalesce: "doc" }));
      // The statement of the first is on its way.
      await new Promise((resolve) => setImmediate(resolve));
      calls.push(bench.hf.enqueue(kind, 3, { coalesce: "doc" }));
      const { id } = (await Promise.all(calls))[0]!;
      expect((await bench.hf.jobs.get(id))?.payload).toBe(3);
    }
  });

  // More than one statement takes.
  test.each([50, 2_300])("of one group keep the order of the calls, %i of them", async (count) => {
    const kind = makeKind<number>();
    const group = `calls ${tier} ${count}`;
    const calls = Array.from({ length: count }, (_, n) => bench.hf.enqueue(kind, n, { group }));
    await new Promise((resolve) => setImmediate(resolve));
    calls.push(bench.hf.enqueue(kind, count, { group }));
    await Promise.all(calls);
    const { rows } = await bench.db.query<{ payload: number }>(
      "select payload from holdfast.jobs where group_key = $1 order by group_seq",
      [group],
    );
    expect(rows.map(({ payload }) => payload)).toEqual(Array.from({ length: count + 1 }, (_, n) => n));
  });
});

describe("somebody else's open transaction", () => {
  const bench = useHoldfast("server");

  test("holds up only the calls with its key, and they end as the same job", async () => {
    const kind = makeKind<string>();
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    try {
      await client.query("begin");
      const first = await bench.hf.enqueue(kind, "mine", { key: "held", tx: client });
      const began = performance.now();
      let isSettled = false;
      const waiting = bench.hf.enqueue(kind, "mine", { key: "held" }).finally(() => (isSettled = true));
      const others = Array.from({ length: 20 }, (_, n) => bench.hf.enqueue(kind, `${n}`, { key: `free ${n}` }));
      await Promise.all(others);
      expect(performance.now() - began).toBeLessThan(4_000);
      expect(isSettled).toBe(false);
      // And those that come later are not held up either.
      await bench.hf.enqueue(kind, "later", { key: "later" });
      expect(isSettled).toBe(false);
      await client.query("commit");
      expect(await waiting).toMatchObject({ id: first.id, created: false, conflict: false });
    } finally {
      await client.end();
    }
  });

  test("does not change the order of a group, one of whose calls waits for its key", async () => {
    const kind = makeKind<string>();
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    try {
      await client.query("begin");
      await bench.hf.enqueue(kind, "mine", { key: "held", tx: client });
      const calls = [
        bench.hf.enqueue(kind, "first", { group: "waits", key: "held" }),
        bench.hf.enqueue(kind, "second", { group: "waits" }),
        // Others are not held up by them.
        bench.hf.enqueue(kind, "other", { group: "others" }),
      ];
      await calls[2];
      calls.push(bench.hf.enqueue(kind, "third", { group: "waits", key: "free" }));
      await bench.hf.enqueue(kind, "other again", { group: "others" });
      await client.query("rollback");
      await Promise.all(calls);
    } finally {
      await client.end();
    }
    const { rows } = await bench.db.query<{ payload: string }>(
      "select payload from holdfast.jobs where group_key = 'waits' order by group_seq",
    );
    expect(rows.map(({ payload }) => payload)).toEqual(["first", "second", "third"]);
  });

  test("that is rolled back leaves the key to whoever waited", async () => {
    const kind = makeKind<string>();
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    try {
      await client.query("begin");
      const first = await bench.hf.enqueue(kind, "mine", { key: "held", tx: client });
      const waiting = bench.hf.enqueue(kind, "theirs", { key: "held" });
      await client.query("rollback");
      expect(await waiting).toMatchObject({ created: true, conflict: false });
      expect((await waiting).id).not.toBe(first.id);
      expect(await bench.hf.jobs.get(first.id)).toBeUndefined();
    } finally {
      await client.end();
    }
  });

  test("that is not ended for long makes the call say so, and nothing is stored", async () => {
    const kind = makeKind<string>();
    const client = new Client({ connectionString: bench.url });
    await client.connect();
    try {
      await client.query("begin");
      await bench.hf.enqueue(kind, "mine", { key: "held", tx: client });
      const other = makeKind<string>();
      const [error, behind] = await Promise.all([
        caught(bench.hf.enqueue(kind, "theirs", { key: "held", group: "both" })),
        caught(bench.hf.enqueue(other, "behind it", { group: "both" })),
      ]);
      expect(error).toMatchObject({
        code: "HOLDFAST_STATE_CONFLICT",
        message: expect.stringContaining(kind.kind),
        hint: expect.stringContaining("Enqueue again"),
      });
      // Of one group, so that it waited with it; what it is told is about its own job.
      expect(behind).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT", message: expect.stringContaining(other.kind) });
    } finally {
      await client.end();
    }
  });
});
