// The failure path must never fail: whatever a handler throws or returns, its job is settled, and the worker goes on.
import { describe, expect, test } from "vitest";
import { runDue } from "#src/testing/index.js";
import { collect } from "../support/events.ts";
import { makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";

const thrower = (): never => {
  throw new Error("inner");
};
const circular = (): Error => {
  const error = new Error("circular");
  error.cause = new Error("middle", { cause: error });
  return error;
};
const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

const THROWN: Record<string, () => unknown> = {
  "NUL in the message": () => new Error("a\0b"),
  "half a surrogate pair": () => new Error("\uD800 \uDFFF"),
  "NUL in name, code and stack": () => Object.assign(new Error("x"), { name: "\0", code: "\0", stack: "\0" }),
  "a huge message": () => new Error("x".repeat(2_000_000)),
  "a huge stack": () => Object.assign(new Error("x"), { stack: "😀".repeat(1_000_000) }),
  null: () => null,
  undefined: () => undefined,
  "a string": () => "just text",
  "an empty string": () => "",
  "a number": () => NaN,
  "a bigint": () => 2n ** 80n,
  "a symbol": () => Symbol("s"),
  "getters that throw": () =>
    Object.defineProperties({}, { message: { get: thrower }, name: { get: thrower }, stack: { get: thrower } }),
  "a circular cause": circular,
  "a cause that throws": () => Object.defineProperty(new Error("x"), "cause", { get: thrower }),
  "a circular object": () => {
    const loop: Record<string, unknown> = {};
    loop["loop"] = loop;
    return loop;
  },
  "a revoked proxy": revoked,
  "a proxy that throws": () => new Proxy({}, { get: thrower, getPrototypeOf: thrower, has: thrower }),
  "SQL and JSON": () => new Error(`'; drop table jobs; -- "}] \\u0000 $1 :schema`),
};

const RETURNED: Record<string, [make: () => unknown, state: string]> = {
  "a bigint": [() => 7n, "dead"],
  "a Map": [() => new Map([[1, 2]]), "dead"],
  "a cycle": [
    () => {
      const loop: Record<string, unknown> = {};
      loop["loop"] = loop;
      return loop;
    },
    "dead",
  ],
  "a function": [() => thrower, "dead"],
  NUL: [() => "\0", "dead"],
  "a getter that throws": [() => Object.defineProperty({}, "x", { get: thrower, enumerable: true }), "dead"],
  "something to wait for that throws": [() => ({ then: thrower }), "pending"],
  "something to wait for, of another make": [() => ({ then: (go: (value: string) => void) => go("value") }), "done"],
  "a revoked proxy": [revoked, "pending"],
};

describe.each(TIERS)("whatever happens, %s", (tier) => {
  const bench = useHoldfast(tier);

  test("a thrown value is recorded, and the job waits for its next try or is dead", async () => {
    const names = Object.keys(THROWN);
    const kind = makeKind<string>({
      attempts: 2,
      backoff: ["0s"],
      run: (job) => {
        throw THROWN[job.payload]!();
      },
    });
    const trouble = collect(bench.hf, "trouble");
    const jobs = await bench.hf.enqueueMany(
      kind,
      names.map((payload) => ({ payload })),
    );
    expect(await runDue(bench.hf, [kind], { concurrency: 10 })).toMatchObject({
      runs: 2 * names.length,
      retrying: names.length,
      dead: names.length,
    });
    trouble.stop();
    expect(trouble.events.map(({ error }) => error)).toEqual([]);
    for (const [n, { id }] of jobs.entries()) {
      const job = await bench.hf.jobs.get(id);
      expect(job, names[n]).toMatchObject({ state: "dead", attempt: 2, lastError: { message: expect.any(String) } });
      expect(await bench.hf.jobs.attempts(id), names[n]).toHaveLength(2);
    }
    const said = async (name: string): Promise<string | undefined> =>
      (await bench.hf.jobs.get(jobs[names.indexOf(name)]!.id))?.lastError?.message;
    expect(await said("NUL in the message")).toBe("a\uFFFDb");
    expect(await said("a string")).toBe("just text");
    expect(await said("null")).toBe("null");
    expect(await said("a circular cause")).toBe("circular");
  });

  test("a returned value that cannot be kept ends the job, and not the worker", async () => {
    const names = Object.keys(RETURNED);
    const kind = makeKind<string>({ run: (job) => RETURNED[job.payload]![0]() });
    const jobs = await bench.hf.enqueueMany(
      kind,
      names.map((payload) => ({ payload })),
    );
    await runDue(bench.hf, [kind], { concurrency: 10 });
    for (const [n, { id }] of jobs.entries()) {
      expect(await bench.hf.jobs.get(id), names[n]).toMatchObject({ state: RETURNED[names[n]!]![1] });
    }
  });

  test("a listener that throws does not disturb anybody", async () => {
    const stops = (["job.claimed", "job.done", "job.enqueued", "job.retrying", "trouble"] as const).map((name) =>
      bench.hf.on(name, thrower),
    );
    const kind = makeKind<number>({
      run: (job) => {
        if (job.payload === 2) throw new Error("no");
      },
    });
    await bench.hf.enqueueMany(kind, [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
    expect(await runDue(bench.hf, [kind])).toMatchObject({ runs: 3, done: 2, retrying: 1 });
    for (const stop of stops) stop();
  });
});
