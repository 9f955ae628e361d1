// The storm in small: 60 files, a few kills. `npm run storm -w apps/chat-uploads` is the full one.
import { expect, test } from "vitest";
import { createDatabase } from "../../../test/support/database.ts";
import { storm } from "../storm/storm.mjs";

test("60 files for a workspace that is killed at random: each on its disk once, with the right hash", async () => {
  const database = await createDatabase();
  const files = Number(process.env["STORM_FILES"] ?? 60);
  try {
    const result = await storm({ database: database.url, files, kills: 4, serverKills: 1 });
    expect(result).toMatchObject({ files, tooEarly: 0, serverKills: 1 });
    expect(result.kills).toBeGreaterThan(2);
  } finally {
    await database.drop();
  }
}, 120_000);
