// A long list, chunk by chunk: what is saved stays saved, and the next attempt starts where the last commit ended.
import { beforeAll, describe, expect, test } from "vitest";
import type { JobKind } from "#src/job/define-job.js";
import type { Chunk, ChunkOptions, JobContext } from "#src/job/handler.js";
import { caught } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";
import { useKinds } from "./scene.ts";

type Items = string[];

const letters = (count: number, from = 0): Items =>
  Array.from({ length: count }, (_, index) => `item-${String(from + index).padStart(3, "0")}`);

/** Every save appends what it did: a second time would show. */
async function makeTables(bench: Bench): Promise<void> {
  await bench.db.query("create table effects (seq serial, job uuid, item text, attempt integer)");
  await bench.db.query("create table vectors (spec text, item text, made_by integer, primary key (spec, item))");
}

const effectsOf = async (bench: Bench, id: string): Promise<string[]> =>
  (await bench.db.query<{ item: string }>("select item from effects where job = $1 order by seq", [id])).rows.map(
    ({ item }) => item,
  );

const saveEffects = (job: JobContext, chunk: Chunk<string>): Promise<void> =>
  chunk.save(async (tx) => {
    await tx.query("insert into effects (job, item, attempt) select $1, unnest($2::text[]), $3", [
      job.id,
      chunk.items,
      job.attempt,
    ]);
  });

interface Seen {
  attempt: number;
  start: number;
  items: readonly string[];
}

interface Chunked<Payload> {
  kind: JobKind<Payload>;
  given: Seen[];
  saved: Seen[];
}

const sizes = (seen: readonly Seen[], attempt?: number): number[] =>
  seen.filter((one) => attempt === undefined || one.attempt === attempt).map(({ items }) => items.length);

describe.each(TIERS)("chunks, %s", (tier) => {
  const bench = useHoldfast(tier);
  const { makeKind, runDue } = useKinds(bench);
  beforeAll(() => makeTables(bench));

  /** A kind that goes through `items` and notes every chunk it is given, before and after it is saved. */
  function makeChunked<Payload>(parts: {
    items(payload: Payload): Items;
    options?: ChunkOptions<string>;
    attempts?: number;
    /** Before the chunk is saved; "skip": it is not saved. */
    before?(job: JobContext<Payload>, chunk: Chunk<string>): Promise<unknown>;
    callTimeout?: `${number}ms`;
  }): Chunked<Payload> {
    const given: Seen[] = [];
    const saved: Seen[] = [];
    const kind = makeKind<Payload>({
      attempts: parts.attempts ?? 5,
      backoff: ["0s"],
      ...(parts.callTimeout ? { callTimeout: parts.callTimeout } : {}),
      async run(job) {
        for await (const chunk of job.chunks("embed", parts.items(job.payload), parts.options)) {
          const seen = { attempt: job.attempt, start: chunk.start, items: chunk.items };
          given.push(seen);
          if ((await parts.before?.(job, chunk)) === "skip") continue;
          await saveEffects(job, chunk);
          saved.push(seen);
        }
        return "embedded";
      },
    });
    return { kind, given, saved };
  }

  test("a job of three chunks that fails on the second one resumes there, and all rows are there once", async () => {
    const { kind, given } = makeChunked<null>({
      items: () => letters(9),
      options: { size: 3 },
      async before(job, chunk) {
        if (job.attempt === 1 && chunk.start === 3) throw new Error("the embedder hung up");
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ runs: 2, retrying: 1, done: 1 });
    expect(given.map(({ attempt, start }) => [attempt, start])).toEqual([
      [1, 0],
      [1, 3],
      [2, 3],
      [2, 6],
    ]);
    expect(await effectsOf(bench, id)).toEqual(letters(9));
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 2, result: "embedded" });
  });

  test("a job that fails on chunk N keeps 0 to N-1, for every N", async () => {
    for (const failAt of [0, 1, 2, 3]) {
      const { kind, given } = makeChunked<null>({
        items: () => letters(4),
        options: { size: 1 },
        async before(job, chunk) {
          if (job.attempt === 1 && chunk.start === failAt) throw new Error("no");
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(given.filter(({ attempt }) => attempt === 2).map(({ start }) => start)).toEqual(
        [0, 1, 2, 3].slice(failAt),
      );
      expect(await effectsOf(bench, id)).toEqual(letters(4));
    }
  });

  test("an error in save fails the attempt as retryable, and none of that chunk's rows stay", async () => {
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        for await (const chunk of job.chunks("embed", letters(4), { size: 2 })) {
          await chunk.save(async (tx) => {
            for (const item of chunk.items) {
              await tx.query("insert into effects (job, item, attempt) values ($1, $2, $3)", [
                job.id,
                item,
                job.attempt,
              ]);
            }
            if (job.attempt === 1 && chunk.start === 2) await tx.query("select 1 / 0");
          });
        }
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ runs: 2, retrying: 1, done: 1, dead: 0 });
    expect(await effectsOf(bench, id)).toEqual(letters(4));
    const { rows } = await bench.db.query("select item, attempt from effects where job = $1 order by seq", [id]);
    expect(rows.map(({ attempt }) => attempt)).toEqual([1, 1, 2, 2]);
    expect(await bench.hf.jobs.attempts(id)).toMatchObject([{ attempt: 1, error: { code: "22012" } }]);
  });

  test("an error of the COMMIT itself surfaces, and the chunk is not saved", async () => {
    await bench.db.query("create table strict (item text unique deferrable initially deferred)");
    const errors: unknown[] = [];
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        for await (const chunk of job.chunks("embed", letters(2), { size: 1 })) {
          const write = chunk.save(async (tx) => {
            await tx.query("insert into strict values ($1)", [job.attempt === 1 ? "same" : chunk.items[0]]);
          });
          await write.catch((error: unknown) => {
            errors.push(error);
            throw error;
          });
        }
      },
    });
    await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ runs: 2, retrying: 1, done: 1 });
    expect(errors).toMatchObject([{ code: "23505" }]);
    const { rows } = await bench.db.query("select item from strict order by item");
    expect(rows).toEqual([{ item: "item-001" }, { item: "same" }]);
  });

  test("rows outside the chunk are untouched, existing ones are updated: what save commits is what its SQL says", async () => {
    const kind = makeKind<{ items: Items; by: number }>({
      async run(job) {
        for await (const chunk of job.chunks("embed", job.payload.items, { size: 2 })) {
          await chunk.save(async (tx) => {
            await tx.query(
              `insert into vectors (spec, item, made_by) select 'a', unnest($1::text[]), $2
               on conflict (spec, item) do update set made_by = excluded.made_by`,
              [chunk.items, job.payload.by],
            );
          });
        }
      },
    });
    await bench.hf.enqueue(kind, { items: letters(4), by: 1 });
    await runDue([kind]);
    await bench.hf.enqueue(kind, { items: letters(3, 2), by: 2 });
    await runDue([kind]);
    const { rows } = await bench.db.query("select item, made_by from vectors where spec = 'a' order by item");
    expect(rows.map(({ item, made_by }) => [item, made_by])).toEqual([
      ["item-000", 1],
      ["item-001", 1],
      ["item-002", 2],
      ["item-003", 2],
      ["item-004", 2],
    ]);
  });

  test("the size that was asked for reaches the handler; 32 if none was, and the last chunk is what is left", async () => {
    for (const [size, count, expected] of [
      [undefined, 70, [32, 32, 6]],
      [50, 120, [50, 50, 20]],
      [1, 2, [1, 1]],
      [100_000, 3, [3]],
    ] as const) {
      const { kind, given } = makeChunked<null>({
        items: () => letters(count),
        ...(size === undefined ? {} : { options: { size } }),
      });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(sizes(given)).toEqual(expected);
    }
  });

  test("a size that cannot be is refused, with the values around it taken", async () => {
    for (const size of [0, -1, 1.5, 100_001, Number.NaN]) {
      const { kind } = makeChunked<null>({ items: () => letters(1), options: { size }, attempts: 1 });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect((await bench.hf.jobs.get(id))?.lastError).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    }
  });

  test("an empty list yields nothing and writes nothing", async () => {
    const { kind, given } = makeChunked<null>({ items: () => [] });
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ done: 1 });
    expect(given).toEqual([]);
    const { rows } = await bench.db.query("select 1 from holdfast.job_notes where job_id = $1", [id]);
    expect(rows).toEqual([]);
  });

  test("save() without rows of its own still keeps the place", async () => {
    const starts: number[][] = [];
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        for await (const chunk of job.chunks("embed", letters(3), { size: 1 })) {
          (starts[job.attempt - 1] ??= []).push(chunk.start);
          await chunk.save();
          if (job.attempt === 1 && chunk.start === 1) throw new Error("no");
        }
      },
    });
    await bench.hf.enqueue(kind, null);
    await runDue([kind]);
    expect(starts).toEqual([[0, 1], [2]]);
  });

  test("a chunk that was neither saved nor too slow is an error, not a gap", async () => {
    const given: number[] = [];
    const kind = makeKind<null>({
      attempts: 1,
      async run(job) {
        for await (const chunk of job.chunks("embed", letters(4), { size: 2 })) given.push(chunk.start);
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ dead: 1 });
    expect(given).toEqual([0]);
    expect((await bench.hf.jobs.get(id))?.lastError?.message).toMatch(/neither saved nor too slow: call chunk\.save/);
  });

  test("a chunk cannot be saved twice, one after the other or at once", async () => {
    const refused: unknown[] = [];
    const kind = makeKind<null>({
      async run(job) {
        for await (const chunk of job.chunks("embed", letters(2), { size: 1 })) {
          if (chunk.start === 0) {
            await saveEffects(job, chunk);
            refused.push(await caught(saveEffects(job, chunk)));
          } else {
            const both = await Promise.allSettled([saveEffects(job, chunk), saveEffects(job, chunk)]);
            refused.push(...both.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : [])));
          }
        }
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ done: 1 });
    expect(await effectsOf(bench, id)).toEqual(letters(2));
    expect(refused).toEqual([
      expect.objectContaining({ message: expect.stringContaining("saved twice") }),
      expect.objectContaining({ message: expect.stringContaining("saved twice") }),
    ]);
  });

  test("a save that failed can be made again in the same attempt", async () => {
    const kind = makeKind<null>({
      async run(job) {
        for await (const chunk of job.chunks("embed", letters(2), { size: 1 })) {
          await caught(chunk.save((tx) => tx.query("select 1 / 0").then(() => undefined)));
          await saveEffects(job, chunk);
        }
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1 });
    expect(await effectsOf(bench, id)).toEqual(letters(2));
  });

  test("two lists in one job keep their own places", async () => {
    const given: string[] = [];
    const kind = makeKind<null>({
      backoff: ["0s"],
      async run(job) {
        for (const name of ["first", "second"]) {
          for await (const chunk of job.chunks(name, letters(2), { size: 1 })) {
            if (job.attempt === 1 && name === "second" && chunk.start === 1) throw new Error("no");
            given.push(`${job.attempt} ${name} ${chunk.start}`);
            await chunk.save();
          }
        }
      },
    });
    await bench.hf.enqueue(kind, null);
    await runDue([kind]);
    expect(given).toEqual(["1 first 0", "1 first 1", "1 second 0", "2 second 1"]);
  });

  test("progress is saved with the chunk, and counts what earlier attempts saved", async () => {
    const { kind } = makeChunked<null>({
      items: () => letters(6),
      options: { size: 2, note: "operations" },
      async before(job, chunk) {
        const { progress } = (await bench.hf.jobs.get(job.id))!;
        if (chunk.start === 0) expect(progress).toBeNull();
        else expect(progress).toMatchObject({ done: chunk.start, total: 6, note: "operations" });
        if (job.attempt === 1 && chunk.start === 4) throw new Error("no");
      },
    });
    const { id } = await bench.hf.enqueue(kind, null);
    await runDue([kind]);
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 2, progress: { done: 6, total: 6 } });
  });

  describe("identity", () => {
    /** Fails after the first save of the first attempt; meanwhile the world changes. */
    function makeInterrupted(options: ChunkOptions<string>, lists: { first: Items; later: Items }) {
      return makeChunked<unknown>({
        items: () => lists.first,
        options,
        async before(job, chunk) {
          if (job.attempt > 1 || chunk.start === 0) return;
          lists.first = lists.later;
          throw new Error("interrupted");
        },
      });
    }

    test("by place: the same list resumes", async () => {
      const { kind, given } = makeInterrupted({ size: 2 }, { first: letters(4), later: letters(4) });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(given.filter(({ attempt }) => attempt === 2).map(({ start }) => start)).toEqual([2]);
    });

    test.each([
      ["one item more", letters(5)],
      ["one item fewer", letters(3)],
      ["another first item", ["other", ...letters(3, 1)]],
      ["another order", letters(4).toReversed()],
    ])("by place: with %s it starts over, and no item is skipped", async (_, later) => {
      const { kind, given } = makeInterrupted({ size: 2 }, { first: letters(4), later });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(given.filter(({ attempt }) => attempt === 2).flatMap(({ items }) => items)).toEqual(later);
    });

    test("by key: a changed list resumes with what is not saved, in the order of the list", async () => {
      const later = ["item-003", "new-1", "item-000", "item-002", "new-2"];
      const { kind, given } = makeInterrupted({ size: 2, key: (item) => item }, { first: letters(4), later });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      // item-000 and item-001 are saved; item-001 has left the list.
      expect(given.filter(({ attempt }) => attempt === 2).flatMap(({ items }) => items)).toEqual([
        "item-003",
        "new-1",
        "item-002",
        "new-2",
      ]);
      expect((await effectsOf(bench, id)).toSorted()).toEqual([...letters(4), "new-1", "new-2"]);
      expect(await bench.hf.jobs.get(id)).toMatchObject({ progress: { done: 5, total: 5 } });
    });

    test("another payload starts over, by place and by key", async () => {
      for (const options of [{ size: 1 }, { size: 1, key: (item: string) => item }]) {
        const given: string[] = [];
        const kind = makeKind<number>({
          backoff: ["0s"],
          async run(job) {
            for await (const chunk of job.chunks("embed", letters(2), options)) {
              given.push(`${job.payload} ${chunk.items[0]!}`);
              await saveEffects(job, chunk);
              if (job.payload === 1 && chunk.start === 1) {
                await bench.hf.enqueue(kind, 2, { coalesce: "spec" });
                throw new Error("and then it fails");
              }
              // What the first payload had saved does not count for the second one's later attempts either.
              if (job.payload === 2 && given.length === 3) throw new Error("again");
            }
          },
        });
        const { id } = await bench.hf.enqueue(kind, 1, { coalesce: "spec" });
        await runDue([kind]);
        expect(given).toEqual(["1 item-000", "1 item-001", "2 item-000", "2 item-001"]);
        expect(await effectsOf(bench, id)).toEqual([...letters(2), ...letters(2)]);
        expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", payload: 2 });
      }
    });

    test("keys must be texts of their own", async () => {
      for (const [key, part] of [
        [() => "same", '"same" twice'],
        [() => "", '""'],
        [() => "x\0", "key gave"],
        [() => "x".repeat(501), "key gave"],
      ] as const) {
        const { kind } = makeChunked<null>({ items: () => letters(2), options: { key }, attempts: 1 });
        const { id } = await bench.hf.enqueue(kind, null);
        await runDue([kind]);
        const error = (await bench.hf.jobs.get(id))?.lastError;
        expect(error).toMatchObject({ code: "HOLDFAST_OPTION_INVALID", message: expect.stringContaining(part) });
      }
      const longest = makeChunked<null>({ items: () => ["x".repeat(500)], options: { key: (item) => item } });
      await bench.hf.enqueue(longest.kind, null);
      expect(await runDue([longest.kind])).toMatchObject({ done: 1 });
    });
  });

  describe("a call that is too slow", () => {
    const CALL_MS = 60;
    /** Takes its time with more than `most` items, and does not look at its signal. */
    const slow = (most: number) => async (items: readonly string[]) => {
      if (items.length > most) await new Promise((resolve) => setTimeout(resolve, 20 * CALL_MS));
      return items.length;
    };

    function makeSlow(parts: { count: number; size: number; most(seen: readonly Seen[]): number; items?: Items }) {
      const made: Chunked<null> = makeChunked<null>({
        items: () => letters(parts.count),
        options: { size: parts.size, callTimeout: `${CALL_MS}ms` },
        async before(_, chunk) {
          const answer = await chunk.call(slow(parts.most(made.given)));
          return answer === undefined ? "skip" : undefined;
        },
      });
      return made;
    }

    test("halves the chunk until it fits, starts again at the same place, and skips nothing", async () => {
      const { kind, given, saved } = makeSlow({ count: 20, size: 16, most: () => 3 });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1 });
      expect(given.slice(0, 5).map(({ start, items }) => [start, items.length])).toEqual([
        [0, 16],
        [0, 8],
        [0, 4],
        [0, 2],
        [2, 2],
      ]);
      expect(await effectsOf(bench, id)).toEqual(letters(20));
      expect(sizes(saved).every((size) => size <= 3)).toBe(true);
    });

    test("grows back after a few that were not, up to the size that was asked for", async () => {
      const { kind, given } = makeSlow({ count: 60, size: 8, most: (seen) => (seen.length <= 2 ? 3 : 100) });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(sizes(given)).toEqual([8, 4, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 4]);
    });

    test("the smaller size survives the attempt, also if no chunk was ever saved", async () => {
      const { kind, given } = makeChunked<null>({
        items: () => letters(8),
        options: { size: 8, callTimeout: `${CALL_MS}ms` },
        async before(job, chunk) {
          if (job.attempt === 2) return undefined;
          if (chunk.items.length < 8) throw new Error("the process must go");
          return (await chunk.call(slow(1))) === undefined ? "skip" : undefined;
        },
      });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(sizes(given, 1)).toEqual([8, 4]);
      expect(sizes(given, 2)).toEqual([4, 4]);
    });

    test("a handler that throws because of it also starts smaller in its next attempt", async () => {
      const { kind, given } = makeChunked<null>({
        items: () => letters(8),
        options: { size: 8, callTimeout: `${CALL_MS}ms` },
        async before(_, chunk) {
          if ((await chunk.call(slow(2))) === undefined) throw new Error("too slow for me");
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 3, done: 1 });
      expect([sizes(given, 1), sizes(given, 2), sizes(given, 3)]).toEqual([[8], [4], [2, 2, 2, 2]]);
      expect(await effectsOf(bench, id)).toEqual(letters(8));
    });

    test("a chunk whose call was too slow cannot be saved: its work is not done", async () => {
      const { kind } = makeChunked<null>({
        items: () => letters(4),
        options: { size: 4, callTimeout: `${CALL_MS}ms` },
        attempts: 1,
        async before(_, chunk) {
          await chunk.call(slow(1));
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(await effectsOf(bench, id)).toEqual([]);
      expect((await bench.hf.jobs.get(id))?.lastError?.message).toMatch(/too slow.*continue/);
    });

    test("one item that is too slow is an error that says so", async () => {
      const { kind, given } = makeSlow({ count: 2, size: 2, most: () => 0 });
      const { id } = await bench.hf.enqueue(kind, null, { attempts: 1 });
      expect(await runDue([kind])).toMatchObject({ dead: 1 });
      expect(sizes(given)).toEqual([2, 1]);
      expect((await bench.hf.jobs.get(id))?.lastError?.message).toMatch(/One item of chunks\("embed"\).*60 ms/);
    });

    test("is told by its signal, and a call that then fails is too slow, not failed", async () => {
      let sawAbort = 0;
      const { kind, given } = makeChunked<null>({
        items: () => letters(2),
        options: { size: 2, callTimeout: `${CALL_MS}ms` },
        async before(_, chunk) {
          const answer = await chunk.call(async (items, signal) => {
            if (items.length === 1) return "quick";
            await new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => {
                sawAbort += 1;
                reject(new Error("given up"));
              });
            });
            return "never";
          });
          return answer === undefined ? "skip" : undefined;
        },
      });
      await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1 });
      expect(sawAbort).toBe(1);
      expect(sizes(given)).toEqual([2, 1, 1]);
    });

    test("is too slow also if its timer was a moment early, as timers are", async () => {
      const answers: unknown[] = [];
      const { kind } = makeChunked<null>({
        items: () => letters(2),
        options: { size: 2, callTimeout: "10ms" },
        async before(_, chunk) {
          if (chunk.items.length === 1) return undefined;
          for (let n = 0; n < 60; n += 1) {
            const giveUp = (_items: unknown, signal: AbortSignal): Promise<never> =>
              new Promise((_resolve, reject) => {
                signal.addEventListener("abort", () => reject(new Error("given up")));
              });
            answers.push(await chunk.call(giveUp));
          }
          return "skip";
        },
      });
      await bench.hf.enqueue(kind, null);
      expect(await runDue([kind])).toMatchObject({ runs: 1, done: 1 });
      expect(answers).toEqual(Array.from({ length: 60 }, () => undefined));
    });

    test("a call that fails in time is a failed attempt", async () => {
      const { kind } = makeChunked<null>({
        items: () => letters(2),
        options: { size: 2, callTimeout: "10s" },
        attempts: 1,
        async before(_, chunk) {
          await chunk.call(() => Promise.reject(new Error("404 from the embedder")));
        },
      });
      const { id } = await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect((await bench.hf.jobs.get(id))?.lastError?.message).toBe("404 from the embedder");
    });

    test("the kind's callTimeout holds where chunks() has none of its own", async () => {
      const { kind, given } = makeChunked<null>({
        items: () => letters(2),
        callTimeout: `${CALL_MS}ms`,
        options: { size: 2 },
        async before(_, chunk) {
          return (await chunk.call(slow(1))) === undefined ? "skip" : undefined;
        },
      });
      await bench.hf.enqueue(kind, null);
      await runDue([kind]);
      expect(sizes(given)).toEqual([2, 1, 1]);
    });
  });
});
