// Results that are built piece by piece and become canonical in one fenced commit.
import { beforeAll, describe, expect, test } from "vitest";
import type { JobContext } from "#src/job/handler.js";
import { makeKind as makeOwnKind, uniqueName } from "../support/make.ts";
import { type Bench, TIERS, useHoldfast } from "../support/open-test.ts";
import { type Kinds, useKinds } from "./scene.ts";

interface Build {
  unit: string;
  model: string;
  items: string[];
  /** Fails after this many saved chunks of its first attempt. */
  failAfter?: number;
}

/** What a reader of the staged recipe sees, and which models that is. */
async function readStaged(bench: Bench, unit: string): Promise<{ items: string[]; models: string[] }> {
  const { rows } = await bench.db.query<{ item: string; model: string }>(
    `select v.item, v.model from staged v
     join holdfast.generations g on g.unit = v.unit and g.current = v.generation
     where v.unit = $1 order by v.item`,
    [unit],
  );
  return { items: rows.map(({ item }) => item), models: [...new Set(rows.map(({ model }) => model))] };
}

describe.each(TIERS)("generations, %s", (tier) => {
  const bench = useHoldfast(tier);
  const { makeKind, runDue } = useKinds(bench);
  beforeAll(() =>
    bench.db.script(`
      create table staged (unit text, generation bigint, item text, model text, primary key (unit, generation, item));
      create table additive (unit text, item text, generation bigint, model text, primary key (unit, item));`),
  );

  /** Readers see the old generation until the flip. `between` is called between the chunks. */
  function makeStaged(
    between: (job: JobContext<Build>, saved: number) => Promise<unknown> | undefined = () => undefined,
    make: Kinds["makeKind"] = makeKind,
  ) {
    const generations: { attempt: number; number: string; previous: string; saved: string[] }[] = [];
    const kind = make<Build>({
      backoff: ["0s"],
      async run(job) {
        const { unit, model, items, failAfter } = job.payload;
        const generation = await job.generation(unit);
        const saved: string[] = [];
        generations.push({ attempt: job.attempt, number: generation.number, previous: generation.previous, saved });
        for await (const chunk of job.chunks("build", items, { size: 2 })) {
          await chunk.save(async (tx) => {
            await tx.query("insert into staged select $1, $2, unnest($3::text[]), $4", [
              unit,
              generation.number,
              chunk.items,
              model,
            ]);
          });
          saved.push(...chunk.items);
          await between(job, saved.length);
          if (job.attempt === 1 && failAfter !== undefined && saved.length >= failAfter) throw new Error("interrupted");
        }
        await job.transaction(async (tx) => {
          const isNewest = await generation.makeCurrent(tx);
          if (isNewest)
            await tx.query("delete from staged where unit = $1 and generation < $2", [unit, generation.number]);
          await job.complete(tx, { isNewest, generation: generation.number });
        });
      },
    });
    return { kind, generations };
  }

  const build = async (payload: Build): Promise<void> => {
    const { kind } = makeStaged();
    await bench.hf.enqueue(kind, payload);
    await runDue([kind]);
  };

  test("staged: readers see the whole old generation until the flip, then the whole new one; never a mix", async () => {
    const unit = uniqueName("unit");
    await build({ unit, model: "old", items: ["a", "b", "c", "d"] });
    expect(await readStaged(bench, unit)).toEqual({ items: ["a", "b", "c", "d"], models: ["old"] });
    const seen: unknown[] = [];
    const { kind } = makeStaged(async () => seen.push(await readStaged(bench, unit)));
    await bench.hf.enqueue(kind, { unit, model: "new", items: ["b", "c", "d", "e", "f"] });
    await runDue([kind]);
    expect(seen).toEqual([1, 2, 3].map(() => ({ items: ["a", "b", "c", "d"], models: ["old"] })));
    expect(await readStaged(bench, unit)).toEqual({ items: ["b", "c", "d", "e", "f"], models: ["new"] });
    const { rows } = await bench.db.query("select distinct model from staged where unit = $1", [unit]);
    expect(rows).toEqual([{ model: "new" }]);
  });

  test("additive: rows are visible at once, and what left the input goes at the end", async () => {
    const unit = uniqueName("unit");
    const seen: string[][] = [];
    const read = async (): Promise<string[]> =>
      (
        await bench.db.query<{ row: string }>(
          "select item || ' ' || model as row from additive where unit = $1 order by 1",
          [unit],
        )
      ).rows.map(({ row }) => row);
    const kind = makeKind<Build>({
      backoff: ["0s"],
      async run(job) {
        const { model, items, failAfter } = job.payload;
        const generation = await job.generation(unit);
        for await (const chunk of job.chunks("build", items, { size: 2 })) {
          await chunk.save(async (tx) => {
            await tx.query(
              `insert into additive select $1, unnest($2::text[]), $3, $4
               on conflict (unit, item) do update set generation = excluded.generation, model = excluded.model`,
              [unit, chunk.items, generation.number, model],
            );
          });
          seen.push(await read());
          if (job.attempt === 1 && failAfter !== undefined && chunk.start >= failAfter) throw new Error("interrupted");
        }
        await job.transaction(async (tx) => {
          await tx.query("delete from additive where unit = $1 and generation < $2", [unit, generation.number]);
          await generation.makeCurrent(tx);
          await job.complete(tx);
        });
      },
    });
    await bench.hf.enqueue(kind, { unit, model: "old", items: ["a", "b", "c"] });
    await runDue([kind]);
    seen.length = 0;
    await bench.hf.enqueue(kind, { unit, model: "new", items: ["b", "c", "d"], failAfter: 0 });
    expect(await runDue([kind])).toMatchObject({ runs: 2, done: 1 });
    expect(seen).toEqual([
      ["a old", "b new", "c new"],
      ["a old", "b new", "c new", "d new"],
    ]);
    expect(await read()).toEqual(["b new", "c new", "d new"]);
  });

  test("a forced rebuild that fails resumes within its own generation, and its finished chunks stay finished", async () => {
    const unit = uniqueName("unit");
    await build({ unit, model: "old", items: ["a", "b", "c", "d"] });
    const { kind, generations } = makeStaged();
    const { id } = await bench.hf.enqueue(kind, { unit, model: "forced", items: ["a", "b", "c", "d"], failAfter: 2 });
    expect(await runDue([kind])).toMatchObject({ runs: 2, done: 1 });
    expect(generations).toEqual([
      { attempt: 1, number: "2", previous: "1", saved: ["a", "b"] },
      { attempt: 2, number: "2", previous: "1", saved: ["c", "d"] },
    ]);
    expect(await readStaged(bench, unit)).toEqual({ items: ["a", "b", "c", "d"], models: ["forced"] });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ result: { isNewest: true, generation: "2" } });
  });

  test("an edit during the run makes it run again with the new payload, in a new generation", async () => {
    const unit = uniqueName("unit");
    await build({ unit, model: "first", items: ["a"] });
    let isEdited = false;
    const { kind, generations } = makeStaged(async () => {
      if (isEdited) return;
      isEdited = true;
      const edited = { unit, model: "edited", items: ["a", "b", "c"] };
      expect(await bench.hf.enqueue(kind, edited, { coalesce: unit })).toMatchObject({
        created: false,
        coalesced: true,
      });
    });
    const { id } = await bench.hf.enqueue(kind, { unit, model: "second", items: ["a", "b"] }, { coalesce: unit });
    expect(await runDue([kind])).toMatchObject({ runs: 2 });
    expect(generations.map(({ number, previous, saved }) => [number, previous, saved])).toEqual([
      ["2", "1", ["a", "b"]],
      ["3", "2", ["a", "b", "c"]],
    ]);
    expect(await readStaged(bench, unit)).toEqual({ items: ["a", "b", "c"], models: ["edited"] });
    expect(await bench.hf.jobs.get(id)).toMatchObject({ state: "done", claimCount: 2, payload: { model: "edited" } });
  });

  test("an edit with the same number of items is not taken for what is there", async () => {
    const unit = uniqueName("unit");
    let isEdited = false;
    const { kind } = makeStaged(async () => {
      if (isEdited) return;
      isEdited = true;
      await bench.hf.enqueue(kind, { unit, model: "m", items: ["x", "y"] }, { coalesce: unit });
    });
    await bench.hf.enqueue(kind, { unit, model: "m", items: ["a", "b"] }, { coalesce: unit });
    await runDue([kind]);
    expect(await readStaged(bench, unit)).toMatchObject({ items: ["x", "y"] });
  });

  test("two jobs build one unit: the one that began later stays, whichever ends last", async () => {
    const unit = uniqueName("unit");
    const results: Record<string, unknown> = {};
    let later: Promise<unknown> | undefined;
    const { kind: laterKind } = makeStaged(undefined, makeOwnKind);
    const { kind } = makeStaged(async (_job, saved) => {
      if (saved !== 2) return;
      // Begins and ends in the middle of the earlier one.
      const { id } = await bench.hf.enqueue(laterKind, { unit, model: "later", items: ["b"] });
      later = bench.hf.jobs.wait(id, { timeout: "15s" }).then((job) => (results["later"] = job.result));
      await later;
    });
    const worker = await bench.hf.work([laterKind]);
    const { id } = await bench.hf.enqueue(kind, { unit, model: "earlier", items: ["a", "b", "c"] });
    await runDue([kind]);
    await worker.stop();
    results["earlier"] = (await bench.hf.jobs.get(id))?.result;
    expect(results).toEqual({
      later: { isNewest: true, generation: "2" },
      earlier: { isNewest: false, generation: "1" },
    });
    expect(await readStaged(bench, unit)).toEqual({ items: ["b"], models: ["later"] });
  });

  test("a flip that rolls back did not happen", async () => {
    const unit = uniqueName("unit");
    await build({ unit, model: "old", items: ["a"] });
    const kind = makeKind<null>({
      async run(job) {
        const generation = await job.generation(unit);
        await job
          .transaction(async (tx) => {
            expect(await generation.makeCurrent(tx)).toBe(true);
            throw new Error("on second thoughts");
          })
          .catch(() => undefined);
      },
    });
    await bench.hf.enqueue(kind, null);
    await runDue([kind]);
    expect(await readStaged(bench, unit)).toEqual({ items: ["a"], models: ["old"] });
  });

  test("an enqueue with the same payload during the run makes it build again, in a new generation", async () => {
    const unit = uniqueName("unit");
    let world = ["a", "b"];
    const built: string[] = [];
    const kind = makeKind<{ unit: string }>({
      async run(job) {
        const generation = await job.generation(unit);
        const items = world;
        if (built.length === 0) {
          world = ["a", "c"];
          await bench.hf.enqueue(kind, { unit }, { coalesce: unit });
        }
        await job.step("announce", async () => built.push(`generation ${generation.number}`));
        for await (const chunk of job.chunks("build", items)) {
          await chunk.save(async (tx) => {
            await tx.query("insert into staged select $1, $2, unnest($3::text[]), 'm'", [
              unit,
              generation.number,
              chunk.items,
            ]);
          });
        }
        await job.transaction(async (tx) => {
          await generation.makeCurrent(tx);
        });
      },
    });
    await bench.hf.enqueue(kind, { unit }, { coalesce: unit, attempts: 1 });
    await runDue([kind]);
    expect(built).toEqual(["generation 1", "generation 2"]);
    expect(await readStaged(bench, unit)).toMatchObject({ items: ["a", "c"] });
  });
});
