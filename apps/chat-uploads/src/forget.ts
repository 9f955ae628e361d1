// Messages, notices and what is known about files go when nobody can do anything with them any more.
import { type Chore, defineChore, type Holdfast } from "holdfast";

export function makeForget(hf: Holdfast, keepMs: number): Chore {
  const forget = (table: string, key: string) => async (limit: number) => {
    const { rowCount } = await hf.sql.query(
      `delete from :schema.${table} where (${key}) in (
         select ${key} from :schema.${table} where created_at < :schema.clock() - make_interval(secs => $1)
         order by created_at limit $2 for update skip locked)`,
      [keepMs / 1_000, limit],
    );
    return rowCount;
  };
  return defineChore("chat-uploads-forget", {
    every: "10m",
    async run(chore) {
      await chore.inBatches("notices", forget("chat_uploads_notices", "workspace_id, seq"));
      await chore.inBatches("messages", forget("chat_uploads_messages", "id"));
      await chore.inBatches("files", forget("chat_uploads_files", "id"));
    },
  });
}
