import { describe, expect, test } from "vitest";
import type { EnqueueOptions } from "#src/client/new-job.js";
import { caught, makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

describe("an enqueue option that cannot work is refused, and nothing is stored", () => {
  const bench = useHoldfast("server");
  const kind = makeKind();

  test.each<[unknown, string, string]>([
    [{ prioritty: 1 }, 'enqueue() has the unknown option "prioritty".', 'Did you mean "priority"?'],
    [{ priority: 101 }, "enqueue() priority is 101.", "-100 to 100"],
    [{ priority: 1.5 }, "enqueue() priority is 1.5.", "-100 to 100"],
    [{ priority: "1" }, "enqueue() priority is 1.", "-100 to 100"],
    [{ delay: 30 }, "enqueue() delay is 30, which is not a duration.", '"30s" or "30ms"'],
    [{ delay: "-1s" }, 'enqueue() delay is "-1s", which is not a duration.', "number and a unit"],
    [{ delay: "1s", runAt: new Date() }, "enqueue() has both runAt and delay.", "one of them"],
    [{ runAt: "soon" }, "enqueue() runAt is soon.", "ISO 8601"],
    [{ runAt: new Date(NaN) }, "enqueue() runAt is Invalid Date.", "ISO 8601"],
    [{ runAt: "0099-01-01" }, "enqueue() runAt is 0099-01-01.", "ISO 8601"],
    [{ attempts: 0 }, "enqueue() attempts is 0.", "1 to 1000"],
    [{ queue: "a b" }, 'enqueue() queue is "a b".', "letters, digits"],
    [{ key: "" }, "enqueue() key is 0 characters long.", "1 to 500"],
    [{ key: "x".repeat(501) }, "enqueue() key is 501 characters long.", "1 to 500"],
    [{ key: 7 }, "enqueue() key is 7.", "1 to 500"],
    [{ key: "a\0" }, "enqueue() key holds a NUL character", "plain text"],
    [{ group: "\uD800" }, "enqueue() group holds a NUL character or half of a surrogate pair.", "plain text"],
    [{ coalesce: "a", key: "b" }, "enqueue() has coalesce together with key.", "Choose one"],
    [{ coalesce: "a", group: "b" }, "enqueue() has coalesce together with group.", "Choose one"],
    [{ onDead: { kind: "a b" } }, 'enqueue() onDead.kind is "a b".', "letters, digits"],
    [{ onDead: { kind: "a", payload: NaN } }, "enqueue() onDead at .payload is NaN.", "string"],
    [
      { onDead: { kind: "a", attempts: 2 } },
      'enqueue() onDead has the unknown option "attempts".',
      "kind, payload, queue",
    ],
    [{ headers: { a: "\0" } }, "enqueue() headers at .a holds a NUL character.", "base64"],
    [{ tx: {} }, "tx is an object, which is", "query(text, values)"],
  ])("%j", async (options, message, hint) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- none of them is an EnqueueOptions: that is the point
    const error = await caught(bench.hf.enqueue(kind, 1, options as EnqueueOptions));
    expect(error).toMatchObject({ message: expect.stringContaining(message), hint: expect.stringContaining(hint) });
    expect(error).toMatchObject({ code: expect.stringMatching(/^HOLDFAST_(OPTION|PAYLOAD)_INVALID$/) });
  });

  test("an option that is undefined is an option not given", async () => {
    // @ts-expect-error the types refuse it, JavaScript does not
    expect(await bench.hf.enqueue(makeKind(), 1, { key: undefined, delay: undefined })).toMatchObject({
      created: true,
    });
  });

  test("a row of many says which one it is", async () => {
    const error = await caught(bench.hf.enqueueMany(kind, [{ payload: 1 }, { payload: 2, priority: 1_000 }]));
    expect(error).toMatchObject({ message: "enqueueMany() row 1 priority is 1000." });
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toEqual([]);
  });

  test("what is no list of rows is refused, and does not count as an empty one", async () => {
    for (const [rows, message] of [
      [new Set([{ payload: 1 }]), "enqueueMany() got no list of rows."],
      [{ payload: 1 }, "enqueueMany() got no list of rows."],
      [[{ payload: 1 }, null], "enqueueMany() row 1 is null."],
      [["text"], "enqueueMany() row 0 is string."],
    ] as const) {
      // @ts-expect-error the types refuse it, JavaScript does not
      const error = await caught(bench.hf.enqueueMany(kind, rows));
      expect(error).toMatchObject({ code: "HOLDFAST_OPTION_INVALID", message });
    }
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toEqual([]);
  });
});
