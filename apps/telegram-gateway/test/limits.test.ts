// How long handlers may take, and what is said when they took longer: by the handler's own limit, in its own words.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { bot, message, openScene, type Scene } from "./scene.ts";

const FAILED = "Sorry, that did not work. Please try again.";
const SLEEPS = [process.execPath, "--eval", "setInterval(() => {}, 1000)"] as const;

describe("server", () => {
  const bench = useHoldfast("server");
  const silent = createServer(() => {});
  const warned: string[] = [];
  const given: AbortSignal[] = [];
  let scene: Scene;
  beforeAll(async () => {
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    const http = { url, timeout: "200ms" } as const;
    const script = { command: SLEEPS, timeout: "300ms" } as const;
    const warn = (_: string, facts: object = {}): void => void warned.push(JSON.stringify(facts));
    scene = await openScene(
      bench.hf,
      {
        bots: {
          deaf: bot({
            timeout: "200ms",
            handler: (_, { signal }) => {
              given.push(signal);
              return new Promise<string>(() => {});
            },
          }),
          "deaf-late": bot({ async: true, timeout: "200ms", handler: () => new Promise<string>(() => {}) }),
          orderly: bot({
            timeout: "200ms",
            handler: (_, { signal }) =>
              new Promise<string>((_resolve, reject) => {
                signal.addEventListener("abort", () => reject(new Error("put away, and out of time")));
              }),
          }),
          http: bot({ handler: "http", http }),
          "http-late": bot({ handler: "http", http, async: true }),
          script: bot({ handler: "script", script }),
          "script-late": bot({ handler: "script", script, async: true }),
        },
      },
      {},
      { debug() {}, info() {}, warn, error: warn },
    );
  });
  afterAll(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const within = async <T>(ms: number, work: Promise<T>): Promise<T | "it hangs"> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"it hangs">((resolve) => (timer = setTimeout(() => resolve("it hangs"), ms)));
    return await Promise.race([work, late]).finally(() => clearTimeout(timer));
  };

  test("a handler that does not heed its signal does not hang the webhook: Telegram and the user hear of it", async () => {
    expect(await within(8_000, scene.post("deaf", message(1, "hello", 1)))).toEqual({ status: 200, came: "failed" });
    expect(given[0]!.aborted).toBe(true);
    expect(warned.join()).toContain("The handler took longer than 200 ms");
    await scene.runDue();
    expect(scene.texts(1)).toEqual([FAILED]);
  }, 20_000);

  test("nor does it hold a job: that is tried again after its own limit", async () => {
    await scene.post("deaf-late", message(2, "hello", 2));
    expect(await within(10_000, scene.runDue())).toMatchObject({ retrying: 1 });
    const { jobs } = await bench.hf.jobs.list({ kind: "telegram.bot.deaf-late" });
    expect(jobs[0]!.lastError?.message).toBe("The handler took longer than 200 ms");
  }, 60_000);

  test("one that heeds its signal is waited for, and its own words are kept", async () => {
    expect(await scene.post("orderly", message(3, "hello", 3))).toMatchObject({ came: "failed" });
    expect(warned.at(-1)).toContain("put away, and out of time");
  });

  test.each([
    ["http", "did not answer within 200 ms"],
    ["script", "took longer than 300 ms"],
  ])("%s: out of time is said as what it is, in the call and in a job", async (slug, words) => {
    expect(await scene.post(slug, message(4, "hello", 4))).toMatchObject({ came: "failed" });
    expect(warned.at(-1)).toContain(words);
    await scene.post(`${slug}-late`, message(4, "hello", 5));
    await scene.runDue();
    const { jobs } = await bench.hf.jobs.list({ kind: `telegram.bot.${slug}-late` });
    expect(jobs[0]!.lastError?.message).toContain(words);
  });
});
