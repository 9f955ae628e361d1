// The storm in small: 200 updates, a few kills. `npm run storm -w apps/telegram-gateway` is the full one.
import { expect, test } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { StandIn } from "../src/index.ts";
import { storm } from "../storm/storm.mjs";

test("200 updates, delivered up to five times in random order while processes are killed: each takes effect once, in order", async () => {
  const database = await createDatabase();
  const standIn = await StandIn.start();
  try {
    const result = await storm({
      database: database.url,
      standInUrl: standIn.url,
      updates: Number(process.env["STORM_UPDATES"] ?? 200),
      chats: 20,
      kills: Number(process.env["STORM_KILLS"] ?? 5),
    });
    expect(result).toMatchObject({ effects: Number(process.env["STORM_UPDATES"] ?? 200) });
    // Otherwise nothing was redelivered, or no kill was made.
    expect(result.duplicates).toBeGreaterThan(50);
    expect(result.kills).toBeGreaterThan(2);
    // Telegram heard every answer, in the order of its chat where it heard it first.
    const heard = new Map<string, number[]>();
    for (const { chat, text } of standIn.sent) {
      const ids = heard.get(chat) ?? [];
      const id = Number(text.split(" ")[1]);
      if (!ids.includes(id)) ids.push(id);
      heard.set(chat, ids);
    }
    for (const ids of heard.values()) expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect([...heard.values()].flat()).toHaveLength(result.effects);
  } finally {
    await standIn.close();
    await database.drop();
  }
}, 120_000);
