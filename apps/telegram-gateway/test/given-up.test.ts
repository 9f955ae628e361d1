// The ladder, the word that it takes longer, and the one word that it was given up. On both tiers.
import { Fatal, Gone } from "holdfast";
import { beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../../../test/support/open-test.ts";
import { bot, message, openScene, type Scene } from "./scene.ts";

const SLOW = "Working on it …";
const GAVE_UP = "Sorry, this could not be done. Somebody has been told.";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let scene: Scene;
  let isMended = false;
  const handled: string[] = [];
  beforeAll(async () => {
    scene = await openScene(bench.hf, {
      bots: {
        broken: bot({
          async: true,
          handler(_, { text }) {
            if (!isMended) throw new Error(`${text} is broken`);
            return `mended ${text}`;
          },
        }),
        slow: bot({
          async: true,
          slowAfter: "50ms",
          async handler() {
            // Until the user was told.
            while (!scene.texts(51).includes(SLOW)) await new Promise((resolve) => setTimeout(resolve, 10));
            return "at last";
          },
        }),
        hopeless: bot({
          async: true,
          handler(_, { text }) {
            const cause = text === "gone" ? new Gone("no such order") : new Fatal("no such word");
            throw new Error("cannot be done", { cause });
          },
        }),
        orderly: bot({
          async: true,
          handler(_, { text, attempt }) {
            if (text === "second" && attempt === 1) throw new Error("not yet");
            handled.push(text);
            return { text };
          },
        }),
      },
    });
  });

  test("a bot that always fails: tried at 0, 30s, 2m, 10m and 1h, dead at the fifth, and the user is told once", async () => {
    await scene.post("broken", message(1, "it", 50));
    expect(await scene.runDue()).toMatchObject({ retrying: 1 });
    expect(scene.texts(50)).toEqual([SLOW]);
    for (const pause of ["30s", "2m", "10m"] as const) {
      await bench.hf.clock.advance(pause);
      expect(await scene.runDue()).toMatchObject({ runs: 1, retrying: 1 });
      expect(scene.texts(50)).toEqual([SLOW]);
    }
    await bench.hf.clock.advance("59m");
    expect(await scene.runDue()).toMatchObject({ runs: 0 });
    await bench.hf.clock.advance("1m");
    expect(await scene.runDue()).toMatchObject({ dead: 1 });
    expect(scene.texts(50)).toEqual([SLOW, GAVE_UP]);

    const { jobs } = await bench.hf.jobs.list({ kind: "telegram.bot.broken" });
    expect(jobs).toMatchObject([{ state: "dead", attempt: 5, lastError: { message: "it is broken" } }]);
    type Said = { badge: { status: string; error: string; attempt: number } | null };
    const { messages } = await scene.get<{ messages: Said[] }>("/telegram-gateway/chats/broken/50");
    expect(messages[0]!.badge).toMatchObject({ status: "dead", attempt: 5, error: "it is broken" });

    // Telegram delivers a dead one again: known, and nothing runs.
    expect(await scene.post("broken", message(1, "it", 50))).toMatchObject({ came: "duplicate" });
    expect(await scene.runDue()).toMatchObject({ runs: 0 });
  });

  test("what is given up at once is not being worked on: the user hears one thing", async () => {
    await scene.post("hopeless", message(5, "word", 53));
    expect(await scene.runDue()).toMatchObject({ dead: 1 });
    expect(scene.texts(53)).toEqual([GAVE_UP]);
    // Nothing is left to do for it, and nothing would follow.
    await scene.post("hopeless", message(6, "gone", 54));
    expect(await scene.runDue()).toMatchObject({ dead: 0, retrying: 0 });
    expect(scene.texts(54)).toEqual([]);
  });

  test("retried by hand it dies again without another word; mended and retried, the user gets the result", async () => {
    const { jobs } = await bench.hf.jobs.list({ kind: "telegram.bot.broken", state: "dead" });
    const again = async (): Promise<void> => {
      await bench.hf.jobs.retry(jobs[0]!.id);
      await scene.runDue();
    };
    await again();
    for (const pause of ["30s", "2m", "10m", "1h"] as const) {
      await bench.hf.clock.advance(pause);
      await scene.runDue();
    }
    expect(await bench.hf.jobs.get(jobs[0]!.id)).toMatchObject({ state: "dead" });
    expect(scene.texts(50)).toEqual([SLOW, GAVE_UP]);
    isMended = true;
    await again();
    expect(scene.texts(50)).toEqual([SLOW, GAVE_UP, "mended it"]);
    isMended = false;
  });

  test("the follow-up of a death that runs twice says it once", async () => {
    const notice = scene.kinds.find((kind) => kind.kind === "telegram.gave-up")!;
    const payload = { job: { id: crypto.randomUUID() }, payload: { bot: "broken", update: message(9, "x", 52) } };
    await bench.hf.enqueueMany(notice, [{ payload }, { payload }]);
    await scene.runDue();
    expect(scene.texts(52)).toEqual([GAVE_UP]);
  });

  test("work that takes longer: the user is told once, then gets the result", async () => {
    await scene.post("slow", message(2, "slowly", 51));
    // The word goes out while the handler still runs.
    const worker = await bench.hf.work(scene.kinds, { concurrency: 4 });
    const [job] = (await bench.hf.jobs.list({ kind: "telegram.bot.slow" })).jobs;
    await bench.hf.jobs.wait(job!.id, { timeout: "20s" });
    await worker.stop();
    await scene.runDue();
    expect(scene.texts(51)).toEqual([SLOW, "at last"]);
  });

  test("a chat's updates wait for the one before, also while that waits for its retry; other chats do not", async () => {
    for (const [id, text] of ["first", "second", "third"].entries())
      await scene.post("orderly", message(10 + id, text, 60));
    await scene.post("orderly", message(20, "elsewhere", 61));
    await scene.runDue();
    expect(handled.toSorted()).toEqual(["elsewhere", "first"]);
    await bench.hf.clock.advance("30s");
    await scene.runDue();
    expect(handled.filter((text) => text !== "elsewhere")).toEqual(["first", "second", "third"]);
    expect(scene.texts(60)).toEqual(["first", SLOW, "second", "third"]);
  });
});
