// The storm in small: 40 files, a few kills. `npm run storm -w apps/chat-uploads` is the full one.
import { expect, test } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { storm } from "../storm/storm.mjs";

test("40 files for a workspace that is killed at random: each on its disk once, with the right hash", async () => {
  const database = await createDatabase();
  const files = Number(process.env["STORM_FILES"] ?? 40);
  try {
    const result = await storm({ database: database.url, files, kills: 2, serverKills: 1 });
    expect(result).toMatchObject({ files, tooEarly: 0, serverKills: 1 });
    // Otherwise it was killed while it did nothing.
    expect(result.atWork).toBeGreaterThan(0);
  } finally {
    await database.drop();
  }
}, 120_000);
