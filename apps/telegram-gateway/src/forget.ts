// Transcripts are kept as long as finished jobs. What belongs to an update that is not handled yet (a dead one waits for
// a person), or to a message that is not sent yet, stays a month longer.
import { type Chore, defineChore, type Holdfast } from "holdfast";

export function makeForget(hf: Holdfast, keepMs: number | null): Chore {
  return defineChore("telegram-forget", {
    every: "10m",
    async run(chore) {
      if (keepMs !== null) {
        await chore.inBatches("forgotten", async (limit) => {
          const { rowCount } = await hf.sql.query(
            `delete from :schema.telegram_messages where id in (
               select id from :schema.telegram_messages
               where created_at < :schema.clock() - make_interval(secs => $1)
                 and (state not in ('received', 'waiting')
                   or created_at < :schema.clock() - make_interval(secs => $1) - interval '30 days')
               order by created_at limit $2 for update skip locked)`,
            [keepMs / 1_000, limit],
          );
          return rowCount;
        });
      }
      await chore.inBatches("sessions", async (limit) => {
        const { rowCount } = await hf.sql.query(
          `delete from :schema.telegram_sessions where user_id in (
             select user_id from :schema.telegram_sessions
             where coalesce(until_at, '-infinity') < :schema.clock()
               and coalesce(wrong_since_at, '-infinity') < :schema.clock() - interval '1 hour'
             limit $1 for update skip locked)`,
          [limit],
        );
        return rowCount;
      });
    },
  });
}
