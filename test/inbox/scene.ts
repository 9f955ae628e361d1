// What the inbox tests share: random bytes with their hash, streams, and the tables behind an inbox.
import { createHash, randomBytes } from "node:crypto";
import { uniqueName } from "../support/make.ts";
import type { Bench } from "../support/open-test.ts";

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

export const someBytes = (size: number): Buffer => randomBytes(size);

/** A recipient that no other test of this run uses. */
export const someone = (): string => uniqueName("ws");

/** As a network would bring it: in pieces of uneven size. */
export async function* inPieces(bytes: Uint8Array, size = 50_001): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export async function collect(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** How many rows each table has for this recipient. Chunks without parcel or draft are counted for everybody. */
export async function tablesOf(bench: Bench, recipient: string) {
  const schema = `"${bench.store.schema}"`;
  const { rows } = await bench.db.query<{ parcels: number; drafts: number; chunks: number; orphans: number }>(
    `select
      (select count(*)::integer from ${schema}.parcels where recipient = $1) as parcels,
      (select count(*)::integer from ${schema}.parcel_drafts where recipient = $1) as drafts,
      (select count(*)::integer from ${schema}.parcel_chunks c where exists (
        select 1 from ${schema}.parcels p where p.id = c.parcel_id and p.recipient = $1
        union all select 1 from ${schema}.parcel_drafts d where d.id = c.parcel_id and d.recipient = $1)) as chunks,
      (select count(*)::integer from ${schema}.parcel_chunks c
        where not exists (select 1 from ${schema}.parcels p where p.id = c.parcel_id)
          and not exists (select 1 from ${schema}.parcel_drafts d where d.id = c.parcel_id)) as orphans`,
    [recipient],
  );
  return rows[0]!;
}

/** What the janitor does every five minutes, now. */
export async function purge(bench: Bench): Promise<Record<string, number>> {
  const [result] = await bench.hf.janitor.run("purge-inbox");
  if (!result?.ran) throw new Error("The chore did not run.");
  if (result.error !== null) throw new Error(result.error);
  return result.rows;
}
