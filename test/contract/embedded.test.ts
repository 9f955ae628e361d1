import { rm } from "node:fs/promises";
import { join } from "node:path";
import { openEmbedded } from "#src/db/embedded.js";
import { testSeed } from "../db/children/seed.mjs";
import { quickFolder } from "../support/quick-folder.ts";
import { dbContract } from "./db-contract.ts";

dbContract("embedded, in a folder", async () => {
  const home = quickFolder("holdfast-contract-");
  const db = await openEmbedded({ folder: join(home, "data") }, { seed: await testSeed() });
  return {
    db,
    async cleanup() {
      await db.close();
      await rm(home, { recursive: true, force: true });
    },
  };
});

dbContract(
  "embedded, in memory",
  async () => {
    const db = await openEmbedded({ memory: true }, { seed: await testSeed() });
    return { db, cleanup: () => db.close() };
  },
  { skip: { timeouts: "nothing can interrupt a statement, and ending the engine would lose the database" } },
);
