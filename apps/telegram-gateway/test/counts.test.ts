// The counts while they are written: somebody else holds the table, on a second connection.
import { beforeAll, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { makeCounts } from "../src/counts.ts";
import { bot, openScene } from "./scene.ts";

const bench = useHoldfast("server");
beforeAll(async () => {
  await openScene(bench.hf, { bots: { echo: bot({ handler: "echo" }) } });
});

/** Holds the table until it is told to let go; `waiting` resolves when so many wait for it. */
async function holdCounts() {
  let letGo = (): void => {};
  const told = new Promise<void>((resolve) => (letGo = resolve));
  let held = (): void => {};
  const holding = new Promise<void>((resolve) => (held = resolve));
  const over = bench.hf.sql.transaction(async (tx) => {
    // Whoever reads gets in, whoever writes waits.
    await tx.query("lock table :schema.telegram_counts in exclusive mode");
    held();
    await told;
  });
  await holding;
  return {
    async waiting(): Promise<void> {
      const asked = `select 1 from pg_locks where relation = ':schema.telegram_counts'::regclass and not granted`;
      const end = Date.now() + 10_000;
      while ((await bench.hf.sql.query(asked)).rowCount === 0) {
        if (Date.now() > end) throw new Error("Nobody waits for the table");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async letGo(): Promise<void> {
      letGo();
      await over;
    },
  };
}

test("what is being written is counted, once: before, while and after it is", async () => {
  const counts = makeCounts(bench.hf);
  const seen = async () => (await counts.read())["shop"]?.accepted;
  counts.start(() => {});
  const held = await holdCounts();
  counts.add("shop", "accepted");
  counts.add("shop", "accepted");
  expect(await seen()).toBe(2);
  await held.waiting();
  counts.add("shop", "accepted");
  const during = seen();
  // Answered at once, or when that is written: both would be right.
  await Promise.race([during, new Promise((resolve) => setTimeout(resolve, 500))]);
  await held.letGo();
  expect(await during).toBe(3);
  expect(await seen()).toBe(3);
  await counts.stop();
  expect(await seen()).toBe(3);
}, 30_000);

test("a database that takes nothing for long does not hold up the end of the process", async () => {
  const counts = makeCounts(bench.hf);
  const troubles: unknown[] = [];
  counts.start((error) => troubles.push(error));
  const held = await holdCounts();
  try {
    counts.add("late", "accepted");
    await held.waiting();
    // More than one turn of the clock.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    const began = performance.now();
    await counts.stop().catch(() => {});
    expect(performance.now() - began).toBeLessThan(6_000);
  } finally {
    await held.letGo();
  }
}, 120_000);
