// kill -9 at every step of a long job: the final state is that of a run without crashes, and nothing happened twice.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Db } from "#src/db/db.js";
import type { Holdfast } from "#src/client/client.js";
import { openTest, type TestHoldfast } from "#src/testing/index.js";
import { partsOf } from "#src/testing/open-test.js";
import { assertSound } from "../support/assert-sound.ts";
import { ended } from "../support/events.ts";
import { killChildren } from "../support/processes.ts";
import { useHoldfast } from "../support/open-test.ts";
import { defineEmbedding, ITEMS, TABLES } from "./children/embedding.mjs";
import { spawnLongChild } from "./scene.ts";

const LEASE = "1s";
const nowhere = (): Promise<void> => Promise.resolve();

/** Where it dies, and how many chunks its next run has to do. */
const PLACES = {
  claimed: 4,
  "in-chunk": 3,
  "in-save": 3,
  "in-save-unheard": 2,
  saved: 2,
  "before-complete": 0,
  "in-complete-unheard": undefined,
} as const;

type Place = keyof typeof PLACES;

/** Everything that can be seen of the job, without what is different in every run. */
async function lookAt(hf: Holdfast, db: Db, id: string) {
  const { rows: effects } = await db.query<{ what: string }>("select what from effects where job = $1 order by seq", [
    id,
  ]);
  const { rows: vectors } = await db.query("select item, vector from vectors where job = $1 order by item", [id]);
  const job = (await hf.jobs.get(id))!;
  return {
    effects: effects.map(({ what }) => what),
    vectors,
    state: job.state,
    result: job.result,
    attempt: job.attempt,
    failed: await hf.jobs.attempts(id),
    done: job.progress?.done,
    total: job.progress?.total,
  };
}

const EXPECTED = {
  effects: ["begin", ...ITEMS.map((item) => `embed ${item}`), "complete"],
  vectors: ITEMS.map((item) => ({ item, vector: item.charCodeAt(0) })),
  state: "done",
  result: { embedded: 7 },
  attempt: 1,
  failed: [],
  done: 7,
  total: 7,
};

afterEach(killChildren);

describe("server", () => {
  const bench = useHoldfast("server");
  /** What became of each place: looked at after everything has died and was recovered. */
  const died = new Map<Place, { id: string; chunks: number }>();

  beforeAll(async () => {
    await bench.db.script(TABLES);
    const places = Object.keys(PLACES) as Place[];
    const exits = await inPairs(places, async (dieAt) => {
      const child = spawnLongChild("killed.mjs", {
        name: dieAt,
        url: bench.url,
        schema: bench.hf.schema,
        kind: `embed.${dieAt}`,
        lease: LEASE,
        dieAt,
      });
      return await child.exited;
    });
    expect(exits.map(({ signal }) => signal)).toEqual(places.map(() => "SIGKILL"));
    // Only now somebody else knows these kinds.
    const kinds = places.map((place) =>
      defineEmbedding(`embed.${place}`, LEASE, (where: string) => {
        if (where === "in-chunk") died.get(place)!.chunks += 1;
        return Promise.resolve();
      }),
    );
    for (const place of places) {
      const { jobs } = await bench.hf.jobs.list({ kind: `embed.${place}` });
      expect(jobs).toHaveLength(1);
      died.set(place, { id: jobs[0]!.id, chunks: 0 });
    }
    const worker = await bench.hf.work(kinds);
    for (const { id } of died.values()) await ended(bench.hf, id);
    await worker.stop();
    await assertSound(bench.db, bench.hf.schema, { idle: true });
  }, 120_000);

  test("a run without crashes", async () => {
    const kind = defineEmbedding("embed.never", LEASE, nowhere);
    const worker = await bench.hf.work([kind]);
    const { id } = await bench.hf.enqueue(kind, null);
    await ended(bench.hf, id);
    await worker.stop();
    expect(await lookAt(bench.hf, bench.db, id)).toEqual(EXPECTED);
  });

  test.each(Object.entries(PLACES) as [Place, number | undefined][])(
    "killed at %s: the same as without, and no more work than was left",
    async (place, chunks) => {
      const { id, chunks: done } = died.get(place)!;
      expect(await lookAt(bench.hf, bench.db, id)).toEqual(EXPECTED);
      expect(done).toBe(chunks ?? 0);
      expect(await bench.hf.jobs.get(id)).toMatchObject({ claimCount: chunks === undefined ? 1 : 2 });
    },
  );
});

describe("embedded", () => {
  const bench = useHoldfast("embedded");
  let hf: TestHoldfast | undefined;
  afterAll(() => hf?.close());

  test("killed after a chunk: the folder is opened again and the job resumes", async () => {
    await bench.db.script(TABLES);
    await bench.hf.close();
    const child = spawnLongChild("killed.mjs", {
      name: "killed",
      url: bench.url,
      schema: "holdfast",
      kind: "embed",
      lease: LEASE,
      dieAt: "saved",
    });
    expect(await child.exited).toMatchObject({ signal: "SIGKILL" });
    hf = await openTest({ database: bench.url });
    let chunks = 0;
    const kind = defineEmbedding("embed", LEASE, (where: string) => {
      if (where === "in-chunk") chunks += 1;
      return Promise.resolve();
    });
    const { jobs } = await hf.jobs.list();
    expect(jobs).toMatchObject([{ state: "running", progress: { done: 4 } }]);
    await hf.work([kind]);
    await ended(hf, jobs[0]!.id);
    expect(await lookAt(hf, partsOf(hf).db, jobs[0]!.id)).toEqual(EXPECTED);
    expect(chunks).toBe(PLACES.saved);
    await assertSound(partsOf(hf).db);
  }, 90_000);
});

/** Two at a time: more processes at once only make each other slow. */
async function inPairs<In, Out>(inputs: readonly In[], work: (input: In) => Promise<Out>): Promise<Out[]> {
  const results: Out[] = [];
  for (let at = 0; at < inputs.length; at += 2) {
    results.push(...(await Promise.all(inputs.slice(at, at + 2).map(work))));
  }
  return results;
}
