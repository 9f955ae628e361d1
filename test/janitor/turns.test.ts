// Whose turn a chore is, when several clients share a database; and what becomes of chores that fail or hang.
import { afterEach, describe, expect, test } from "vitest";
import { type Chore, type ChoreContext, defineChore } from "#src/job/define-chore.js";
import { makeEmitter } from "#src/shared/emitter.js";
import { type Janitor, makeJanitor } from "#src/janitor/janitor.js";
import type { HoldfastEvents } from "#src/metrics/events.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";

let named = 0;
const nextName = (): string => `chore-${(named += 1)}`;

const events = makeEmitter<HoldfastEvents>(() => {});
const never = new Promise<never>(() => {});
const tick = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(isTrue: () => boolean | Promise<boolean>, withinMs = 15_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error("It did not come true in time.");
    await tick(10);
  }
}

describe.each(TIERS)("a chore (%s)", (tier) => {
  const bench = useHoldfast(tier);
  const janitors: Janitor[] = [];
  afterEach(async () => {
    await Promise.all(janitors.splice(0).map((each) => each.stop()));
  });
  function janitor(...chores: Chore[]): Janitor {
    const made = makeJanitor({ store: bench.store, events, chores });
    janitors.push(made);
    return made;
  }

  test("runs at once at the start, and then after its interval", async () => {
    const startedAt = Date.now();
    const ran: number[] = [];
    const chore = defineChore(nextName(), { every: "300ms", run: () => void ran.push(Date.now() - startedAt) });
    await janitor(chore).start();
    await until(() => ran.length >= 3);
    expect(ran[0]).toBeLessThan(250);
    expect(ran[1]! - ran[0]!).toBeGreaterThanOrEqual(250);
  });

  test("that hangs beside eight that do not is abandoned at its deadline, and tried again; the eight go on", async () => {
    const trouble: string[] = [];
    const stop = events.on("trouble", ({ where }) => void trouble.push(where));
    const runs = new Map<string, number>();
    const signals: AbortSignal[] = [];
    const hanging = defineChore(nextName(), {
      every: "5s",
      deadline: "100ms",
      async run({ signal }) {
        signals.push(signal);
        await never;
      },
    });
    const others = Array.from({ length: 8 }, () => {
      const name = nextName();
      return defineChore(name, { every: "50ms", run: () => void runs.set(name, (runs.get(name) ?? 0) + 1) });
    });
    await janitor(hanging, ...others).start();
    await until(() => signals.length >= 2 && others.every(({ name }) => (runs.get(name) ?? 0) >= 5));
    stop();
    expect(signals[0]!.aborted).toBe(true);
    expect(trouble).toContain(`janitor: ${hanging.name}`);
    const { runs: history } = await bench.hf.janitor.history({ chore: hanging.name });
    expect(history.at(-1)).toMatchObject({ chore: hanging.name, rows: {}, error: expect.stringContaining("100 ms") });
  });

  test("that throws, in its first line or later, is counted and tried again after a growing pause", async () => {
    const at: number[] = [];
    const chore = defineChore(nextName(), {
      every: "1h",
      run() {
        at.push(performance.now());
        throw new Error("no \0 luck");
      },
    });
    await janitor(chore).start();
    await until(() => at.length >= 3);
    expect(at[1]! - at[0]!).toBeGreaterThan(900);
    expect(at[2]! - at[1]!).toBeGreaterThan(1_900);
    const { rows } = await bench.db.query(`select failures, error from holdfast.chores where name = $1`, [chore.name]);
    expect(rows[0]).toMatchObject({ error: "no \uFFFD luck" });
  });

  test("is counted by outcome, written down when it did something, and quiet when it did not", async () => {
    const ran: HoldfastEvents["chore.ran"][] = [];
    const stop = events.on("chore.ran", (event) => void ran.push(event));
    let left = 2_500;
    const step = (limit: number): Promise<number> => {
      const taken = Math.min(limit, left);
      left -= taken;
      return Promise.resolve(taken);
    };
    const chore = defineChore(nextName(), {
      every: "1h",
      async run(context: ChoreContext) {
        await context.inBatches("expired", step);
        context.count("nothing", 0);
      },
    });
    const made = janitor(chore);
    expect(await made.run(chore.name)).toMatchObject([{ ran: true, rows: { expired: 2_500 }, more: false }]);
    expect(await made.run(chore.name)).toMatchObject([{ ran: true, rows: {} }]);
    stop();
    expect(ran.map(({ rows }) => rows)).toEqual([{ expired: 2_500 }, {}]);
    const { runs } = await made.history({ chore: chore.name });
    expect(runs).toHaveLength(1);
    expect(runs[0]).toMatchObject({ rows: { expired: 2_500 }, error: null, by: expect.stringMatching(/:\d+$/) });
  });

  test("stops taking batches at its budget, and comes back soon for the rest", async () => {
    const began: number[] = [];
    const chore = defineChore(nextName(), {
      every: "1h",
      budget: "50ms",
      batchSize: 10,
      async run(context) {
        began.push(performance.now());
        await context.inBatches("purged", async (limit) => {
          await tick(5);
          return limit;
        });
      },
    });
    const made = janitor(chore);
    await made.start();
    await until(() => began.length >= 2);
    const { runs } = await made.history({ chore: chore.name });
    expect(runs.length).toBeGreaterThan(0);
    expect(runs[0]!.tookMs).toBeLessThan(1_000);
  });

  test("takes smaller batches when its statements take long or fail, and larger ones again", async () => {
    const asked: number[] = [];
    let mode: "slow" | "fail" | "quick" = "slow";
    const chore = defineChore(nextName(), {
      every: "1h",
      batchSize: 800,
      run: async (context) =>
        void (await context.inBatches("purged", async (limit) => {
          asked.push(limit);
          if (mode === "fail") throw new Error("canceling statement due to statement timeout");
          if (mode === "slow") await tick(350);
          return 0;
        })),
    });
    const made = janitor(chore);
    await made.run();
    mode = "fail";
    await made.run();
    mode = "quick";
    await made.run();
    await made.run();
    await made.run();
    expect(asked).toEqual([800, 400, 200, 400, 800]);
  });

  test("with the name of another is refused", () => {
    const chore = defineChore(nextName(), { every: "1h", run: () => {} });
    expect(() => janitor(chore, chore)).toThrow(`There are two chores named "${chore.name}".`);
  });

  test("of a janitor that stops is not a failure, and the stop waits for its statement", async () => {
    let ended = false;
    const chore = defineChore(nextName(), {
      every: "1h",
      async run({ signal }) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        await tick(50);
        ended = true;
        signal.throwIfAborted();
      },
    });
    const made = janitor(chore);
    await made.start();
    await until(
      async () => (await bench.db.query(`select from holdfast.chores where name = $1`, [chore.name])).rowCount > 0,
    );
    await made.stop();
    expect(ended).toBe(true);
    const { rows } = await bench.db.query(`select token, failures, error from holdfast.chores where name = $1`, [
      chore.name,
    ]);
    expect(rows).toEqual([{ token: null, failures: 0, error: null }]);
  });
});

describe("a chore, with several janitors on one database (two connections)", () => {
  const bench = useHoldfast("server");
  const janitors: Janitor[] = [];
  afterEach(async () => {
    await Promise.all(janitors.splice(0).map((each) => each.stop()));
  });
  function janitor(...chores: Chore[]): Janitor {
    const made = makeJanitor({ store: bench.store, events, chores });
    janitors.push(made);
    return made;
  }

  test("is run by one at a time", async () => {
    const name = nextName();
    let running = 0;
    let most = 0;
    let runs = 0;
    const chore = (): Chore =>
      defineChore(name, {
        every: "20ms",
        async run() {
          most = Math.max(most, (running += 1));
          await tick(15);
          running -= 1;
          runs += 1;
        },
      });
    await Promise.all([1, 2, 3, 4].map(() => janitor(chore()).start()));
    await until(() => runs >= 20);
    expect(most).toBe(1);
  });

  test("that a process left in the middle is taken over within seconds, though it would be due much later", async () => {
    const name = nextName();
    let runs = 0;
    await janitor(defineChore(name, { every: "1h", run: () => void (runs += 1) })).start();
    await until(() => runs === 1);
    await until(async () => {
      const { rowCount } = await bench.db.query(
        `update holdfast.chores set token = 7, run_by = 'dead:1', expires_at = now() + interval '500 milliseconds'
         where name = $1 and token is null`,
        [name],
      );
      return rowCount > 0;
    });
    await until(() => runs === 2, 10_000);
  });

  test("is run in each at the same time if it says so", async () => {
    const name = nextName();
    let running = 0;
    let most = 0;
    const chore = (): Chore =>
      defineChore(name, {
        every: "20ms",
        everywhere: true,
        async run() {
          most = Math.max(most, (running += 1));
          await tick(50);
          running -= 1;
        },
      });
    await Promise.all([1, 2].map(() => janitor(chore()).start()));
    await until(() => most === 2);
  });

  test("asked for by a person while another runs it is left alone, and the answer says who has it", async () => {
    const name = nextName();
    let finish = (): void => {};
    const chore = defineChore(name, { every: "1h", run: () => new Promise<void>((resolve) => (finish = resolve)) });
    const [first, second] = [janitor(chore), janitor(chore)];
    const run = first.run(name);
    await until(async () => (await bench.db.query(`select from holdfast.chores where name = $1`, [name])).rowCount > 0);
    expect(await second.run(name)).toEqual([{ chore: name, ran: false, by: expect.stringMatching(/:\d+$/) }]);
    finish();
    expect(await run).toMatchObject([{ ran: true, error: null }]);
  });

  test("whose turn was taken over is told by its signal, and does not end the other's turn", async () => {
    const name = nextName();
    let reason: unknown;
    const chore = defineChore(name, {
      every: "1h",
      run: ({ signal }) =>
        new Promise<void>((_, reject) => {
          signal.addEventListener("abort", () => reject((reason = signal.reason) as Error));
        }),
    });
    const run = janitor(chore).run(name);
    await until(async () => (await bench.db.query(`select from holdfast.chores where name = $1`, [name])).rowCount > 0);
    await bench.db.query(`update holdfast.chores set token = 7, run_by = 'other:1' where name = $1`, [name]);
    expect(await run).toMatchObject([{ ran: true, error: expect.stringContaining("TurnLost") }]);
    expect(reason).toMatchObject({ name: "TurnLost" });
    const { rows } = await bench.db.query(`select token, run_by, failures from holdfast.chores where name = $1`, [
      name,
    ]);
    expect(rows).toEqual([{ token: "7", run_by: "other:1", failures: 0 }]);
  });
});
