// The bots of `holdfast dev` where there are no others: one for each thing that can happen, at a speed that can be
// watched. They talk to the stand-in for Telegram's API and need no network.
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { BotOptions, GatewayOptions } from "./bot.ts";

const QUICK_LADDER = ["2s", "4s", "6s", "8s"] as const;

export function sampleBots(): GatewayOptions {
  const bot = (number: number, options: Omit<BotOptions, "token" | "secret">): BotOptions => ({
    token: `${number}:${randomBytes(24).toString("base64url")}`,
    secret: randomBytes(24).toString("base64url"),
    requireAuth: false,
    ladder: QUICK_LADDER,
    ...options,
  });
  return {
    authSecret: "open sesame",
    bots: {
      echo: bot(1001, { handler: "echo" }),
      slow: bot(1002, {
        async: true,
        slowAfter: "1s",
        async handler(_, { text, signal }) {
          await delay(5_000, undefined, { signal });
          return `That took a while: ${text}`;
        },
      }),
      flaky: bot(1003, {
        async: true,
        handler(_, { text, attempt }) {
          if (attempt < 3) throw new Error(`Try ${attempt} was bound to fail`);
          return `It worked at try ${attempt}: ${text}`;
        },
      }),
      broken: bot(1004, {
        async: true,
        handler() {
          throw new Error("This bot always fails");
        },
      }),
      sum: bot(1005, {
        async: true,
        handler: "script",
        script: { command: [process.execPath, "--eval", SUM], timeout: "10s" },
      }),
      door: bot(1006, { handler: "auth", requireAuth: false }),
      vault: bot(1007, { async: true, handler: "echo", requireAuth: true }),
    },
  };
}

/** A program as any other: the update on its input, the answer on its output. */
const SUM = `
  let text = "";
  process.stdin.on("data", (piece) => (text += piece)).on("end", () => {
    const numbers = (JSON.parse(text).message?.text ?? "").match(/-?\\d+(\\.\\d+)?/g) ?? [];
    if (numbers.length === 0) return console.log("Send me some numbers.");
    console.log(numbers.join(" + ") + " = " + numbers.reduce((sum, number) => sum + Number(number), 0));
  });
`;
