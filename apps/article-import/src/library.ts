// Which pages an owner has, by the hashes of their addresses. The first import that says "saved" has the page; whoever says
// it later is told that it is a duplicate, whichever of the devices, tabs and imports it is.
import { createHash } from "node:crypto";
import type { Holdfast } from "holdfast";

export interface ItemPlace {
  batchId: string;
  seq: number;
  /** It is asked for again: what was saved before does not count, and stays known until this is saved. */
  since?: Date;
}

export interface Library {
  /** Those that the owner has already; not through this item itself. */
  known(owner: string, urls: readonly string[], place?: ItemPlace): Promise<Set<string>>;
  /** True: the owner has it now, by this item. False: it had it before, by another. */
  take(owner: string, urls: readonly string[], place: ItemPlace): Promise<boolean>;
  /** So that it can be imported again. */
  forget(owner: string, urls: readonly string[]): Promise<void>;
}

const hash = (url: string): Buffer => createHash("sha256").update(url).digest();

export function makeLibrary(hf: Holdfast): Library {
  return {
    async known(owner, urls, place) {
      const byHash = new Map(urls.map((url) => [hash(url).toString("hex"), url]));
      const { rows } = await hf.sql.query<{ hash: string }>(
        `select encode(url_hash, 'hex') as hash from :schema.articles_saved
         where owner = $1 and url_hash in (select decode(h, 'hex') from jsonb_array_elements_text($2::text::jsonb) as h)
           and not (batch_id = coalesce($3, '00000000-0000-0000-0000-000000000000')::uuid and seq = $4)
           and ($5::text is null or saved_at >= $5::text::timestamptz)`,
        [
          owner,
          JSON.stringify([...byHash.keys()]),
          place?.batchId ?? null,
          place?.seq ?? 0,
          place?.since?.toISOString() ?? null,
        ],
      );
      return new Set(rows.map((row) => byHash.get(row.hash)!));
    },
    take: (owner, urls, { batchId, seq, since }) =>
      hf.sql.transaction(async (tx) => {
        // In one order, so that two do not wait for each other.
        const hashes = [...new Set(urls.map((url) => hash(url).toString("hex")))].sort();
        let isOwn = true;
        for (const each of hashes) {
          const { rows } = await tx.query<{ own: boolean }>(
            `insert into :schema.articles_saved as s (owner, url_hash, batch_id, seq) values ($1, decode($2, 'hex'), $3, $4)
             on conflict (owner, url_hash) do update set
               batch_id = case when s.saved_at < $5::text::timestamptz then excluded.batch_id else s.batch_id end,
               seq = case when s.saved_at < $5::text::timestamptz then excluded.seq else s.seq end,
               saved_at = case when s.saved_at < $5::text::timestamptz then excluded.saved_at else s.saved_at end
             returning s.batch_id = $3 and s.seq = $4 as own`,
            [owner, each, batchId, seq, since?.toISOString() ?? null],
          );
          isOwn &&= rows[0]!.own;
        }
        return isOwn;
      }),
    async forget(owner, urls) {
      await hf.sql.query(
        `delete from :schema.articles_saved where owner = $1
           and url_hash in (select decode(h, 'hex') from jsonb_array_elements_text($2::text::jsonb) as h)`,
        [owner, JSON.stringify(urls.map((url) => hash(url).toString("hex")))],
      );
    },
  };
}
