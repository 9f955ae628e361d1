// What the importer need not remember: hosts that nobody asked for in a day, visits that are over. Which pages an owner has
// is kept.
import { type Chore, defineChore, type Holdfast } from "holdfast";

export function makeTidyChore(hf: Holdfast): Chore {
  return defineChore("articles-tidy", {
    every: "1h",
    async run(chore) {
      await chore.inBatches("hosts", async (limit) => {
        const { rowCount } = await hf.sql.query(
          `delete from :schema.articles_hosts where host in (
             select host from :schema.articles_hosts
             where next_at < :schema.clock() - interval '1 day'
               and coalesce(robots_until_at, '-infinity') < :schema.clock()
             limit $1 for update skip locked)`,
          [limit],
        );
        return rowCount;
      });
      await chore.inBatches("visits", async (limit) => {
        const { rowCount } = await hf.sql.query(
          `delete from :schema.articles_visits where (host, place) in (
             select host, place from :schema.articles_visits where until_at < :schema.clock() - interval '1 day'
             limit $1 for update skip locked)`,
          [limit],
        );
        return rowCount;
      });
    },
  });
}
