import { openPostgres } from "#src/db/postgres.js";
import { createDatabase } from "../support/database.ts";
import { dbContract } from "./db-contract.ts";

dbContract("PostgreSQL", async () => {
  const database = await createDatabase();
  const db = await openPostgres({ url: database.url });
  return {
    db,
    async cleanup() {
      await db.close();
      await database.drop();
    },
  };
});
