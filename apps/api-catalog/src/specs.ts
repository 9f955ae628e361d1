// Catalogs and their specs. A change and the job that it needs are one commit.
//
// The job's row is locked before the spec's, here and in a run that ends: the other way round two could wait for each other.
import { randomUUID } from "node:crypto";
import type { Holdfast, SqlTransaction } from "holdfast";
import type { EmbedKind } from "./embed-kind.ts";
import { KIND } from "./names.ts";
import { hashOf, operationKey, type ParsedDocument } from "./parse/parse-document.ts";
import { Refused } from "./refused.ts";

export interface SpecRow {
  id: string;
  catalog: string;
  name: string;
  title: string;
  version: string;
  format: string;
  contentHash: string;
  problems: string[];
  operationCount: number;
  revision: string;
  epoch: string;
  model: string | null;
  jobId: string | null;
  indexedAt: Date | null;
  isParked: boolean;
}

export interface Catalog {
  id: string;
  name: string;
}

export interface Stored {
  id: string;
  isNew: boolean;
  isChanged: boolean;
  job: string | null;
}

export interface Specs {
  makeCatalog(id: string, name: string): Promise<boolean>;
  catalogs(): Promise<Catalog[]>;
  findCatalog(id: string): Promise<Catalog | undefined>;
  renameCatalog(id: string, name: string): Promise<boolean>;
  removeCatalog(id: string): Promise<boolean>;
  list(catalog: string): Promise<SpecRow[]>;
  find(catalog: string, name: string): Promise<SpecRow | undefined>;
  put(catalog: string, name: string, text: string, document: ParsedDocument): Promise<Stored>;
  rename(catalog: string, name: string, to: string): Promise<boolean>;
  remove(catalog: string, name: string): Promise<boolean>;
  /** All of it again, whatever is there. */
  reembed(spec: SpecRow): Promise<{ id: string; created: boolean } | undefined>;
  /** What is missing. */
  enqueue(spec: Pick<SpecRow, "id" | "catalog" | "revision" | "epoch">): Promise<void>;
}

const COLUMNS = `s.id, s.catalog_id as "catalog", s.name, s.title, s.version, s.format,
  s.content_hash as "contentHash", s.problems,
  s.operation_count as "operationCount", s.revision::text, s.epoch::text, s.model, s.job_id as "jobId",
  s.indexed_at as "indexedAt", coalesce(s.parked_until_at > :schema.clock(), false) as "isParked"`;
const MOST_CATALOGS = 1_000;
const MOST_SPECS = 1_000;
const ROWS = 500;

export function makeSpecs(hf: Holdfast, kind: EmbedKind | undefined): Specs {
  const { sql } = hf;
  const find = async (catalog: string, name: string): Promise<SpecRow | undefined> =>
    (
      await sql.query<SpecRow>(
        `select ${COLUMNS} from :schema.catalog_specs s where s.catalog_id = $1 and s.name = $2`,
        [catalog, name],
      )
    ).rows[0];
  const changed = async (text: string, values: readonly unknown[]): Promise<boolean> =>
    (await sql.query(text, values)).rowCount > 0;

  const ask = async (
    tx: SqlTransaction,
    spec: Pick<SpecRow, "id" | "catalog" | "revision" | "epoch">,
  ): Promise<{ id: string; created: boolean } | undefined> => {
    if (!kind) return undefined;
    const { id, catalog, revision, epoch } = spec;
    return await hf.enqueue(kind, { spec: id, catalog, revision, epoch }, { coalesce: id, tx });
  };

  /** A job that was given up is settled by the one that takes its place. */
  const settle = async (job: string | null): Promise<void> => {
    if (job === null) return;
    if ((await hf.jobs.get(job))?.state === "dead") await hf.jobs.discard(job).catch(() => undefined);
  };

  /** Nobody retries what is embedded for a spec that is gone. */
  const settleAll = async (payload: { catalog: string } | { spec: string }): Promise<void> => {
    let cursor: string | undefined;
    do {
      const { jobs, next } = await hf.jobs.list({ kind: KIND, state: "dead", payload, limit: ROWS, cursor });
      for (const { id } of jobs) await hf.jobs.discard(id).catch(() => undefined);
      cursor = next ?? undefined;
    } while (cursor !== undefined);
  };

  const refuseWhenFull = async (catalog: string): Promise<void> => {
    const { rows } = await sql.query<{ n: number }>(
      "select count(*)::int as n from :schema.catalog_specs where catalog_id = $1",
      [catalog],
    );
    if (rows[0]!.n < MOST_SPECS) return;
    const reason = `The catalog ${catalog} has ${MOST_SPECS} specs.`;
    throw new Refused(409, "FULL", reason, "Put it into another catalog, or delete one of them.");
  };

  return {
    find,
    makeCatalog: (id, name) =>
      changed("insert into :schema.catalog_catalogs (id, name) values ($1, $2) on conflict do nothing", [id, name]),
    catalogs: async () =>
      (
        await sql.query<Catalog>(
          `select id, name from :schema.catalog_catalogs order by name, id limit ${MOST_CATALOGS}`,
        )
      ).rows,
    findCatalog: async (id) =>
      (await sql.query<Catalog>("select id, name from :schema.catalog_catalogs where id = $1", [id])).rows[0],
    renameCatalog: (id, name) => changed("update :schema.catalog_catalogs set name = $2 where id = $1", [id, name]),
    async removeCatalog(id) {
      const isGone = await changed("delete from :schema.catalog_catalogs where id = $1", [id]);
      await settleAll({ catalog: id });
      return isGone;
    },
    list: async (catalog) =>
      (
        await sql.query<SpecRow>(
          `select ${COLUMNS} from :schema.catalog_specs s where s.catalog_id = $1 order by s.name limit ${MOST_SPECS}`,
          [catalog],
        )
      ).rows,
    rename: async (catalog, name, to) =>
      await changed(
        "update :schema.catalog_specs set name = $3, updated_at = :schema.clock() where catalog_id = $1 and name = $2",
        [catalog, name, to],
      ).catch((error: unknown) => {
        if (codeOf(error) !== UNIQUE_VIOLATION) throw error;
        throw new Refused(409, "SPEC_EXISTS", `There is a spec ${to} already.`, "Choose another name.");
      }),
    async remove(catalog, name) {
      const { rows } = await sql.query<{ id: string }>(
        "delete from :schema.catalog_specs where catalog_id = $1 and name = $2 returning id",
        [catalog, name],
      );
      for (const { id } of rows) await settleAll({ spec: id });
      return rows.length > 0;
    },
    async put(catalog, name, text, document) {
      const before = await find(catalog, name);
      const hash = hashOf(text);
      if (before?.contentHash === hash) return { id: before.id, isNew: false, isChanged: false, job: before.jobId };
      if (!before) await refuseWhenFull(catalog);
      const stored = await sql
        .transaction(async (tx) => {
          const id = before?.id ?? randomUUID();
          const revision = String(BigInt(before?.revision ?? "0") + 1n);
          const job = await ask(tx, { id, catalog, revision, epoch: before?.epoch ?? "1" });
          const { rows } = await tx.query<{ isNew: boolean }>(
            `insert into :schema.catalog_specs as s
             (id, catalog_id, name, title, version, format, content_hash, problems, operation_count, job_id)
           values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, 0, $9)
           on conflict (catalog_id, name) do update
           set title = excluded.title, version = excluded.version, format = excluded.format, problems = excluded.problems,
             content_hash = excluded.content_hash, job_id = coalesce(excluded.job_id, s.job_id),
             revision = s.revision + 1, failures = 0, parked_until_at = null, parked_job_id = null,
             updated_at = :schema.clock()
           where s.id = $1
           returning (s.revision = 1) as "isNew"`,
            [
              id,
              catalog,
              name,
              document.title,
              document.version,
              document.format,
              hash,
              JSON.stringify(document.problems),
              job?.id ?? null,
            ],
          );
          if (!rows[0]) throw busy(name);
          await writeOperations(tx, id, document);
          return { id, ...rows[0], isChanged: true, job: job?.id ?? null };
        })
        .catch((error: unknown) => {
          // The catalog was deleted, or the spec renamed, since it was looked at.
          throw codeOf(error) === NO_PARENT || codeOf(error) === UNIQUE_VIOLATION ? busy(name) : error;
        });
      if (stored.job !== before?.jobId) await settle(before?.jobId ?? null);
      return stored;
    },
    async reembed(spec) {
      const asked = await sql.transaction(async (tx) => {
        const epoch = String(BigInt(spec.epoch) + 1n);
        const job = await ask(tx, { ...spec, epoch });
        await tx.query(
          `update :schema.catalog_specs set epoch = greatest(epoch, $2), job_id = coalesce($3, job_id), failures = 0,
             parked_until_at = null, parked_job_id = null where id = $1`,
          [spec.id, epoch, job?.id ?? null],
        );
        return job;
      });
      if (asked && asked.id !== spec.jobId) await settle(spec.jobId);
      return asked;
    },
    async enqueue(spec) {
      const before = (
        await sql.query<{ job: string | null }>("select job_id as job from :schema.catalog_specs where id = $1", [
          spec.id,
        ])
      ).rows[0];
      const job = await sql.transaction(async (tx) => {
        const asked = await ask(tx, spec);
        if (asked) await tx.query("update :schema.catalog_specs set job_id = $2 where id = $1", [spec.id, asked.id]);
        return asked;
      });
      if (job && before && before.job !== job.id) await settle(before.job);
    },
  };
}

const NO_PARENT = "23503";
const UNIQUE_VIOLATION = "23505";
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;

const busy = (name: string): Refused =>
  new Refused(409, "SPEC_BUSY", `The spec ${name} was changed by somebody else just now.`, "Send it again.");

/** What left the document goes; what stayed the same is not touched. */
async function writeOperations(tx: SqlTransaction, spec: string, document: ParsedDocument): Promise<void> {
  const byKey = new Map(document.operations.map((operation) => [operationKey(operation), operation]));
  const list = [...byKey].map(([operation, { names, operationId, content, ...rest }]) => ({
    ...rest,
    operation,
    content,
    operation_id: operationId,
    hash: hashOf(content),
    head: `${names} ${rest.summary}`,
  }));
  await tx.query(
    "delete from :schema.catalog_operations where spec_id = $1 and not (operation = any (array(select jsonb_array_elements_text($2::jsonb))))",
    [spec, JSON.stringify(list.map(({ operation }) => operation))],
  );
  for (let place = 0; place < list.length; place += ROWS) {
    await tx.query(
      `insert into :schema.catalog_operations as o
         (spec_id, operation, method, path, operation_id, summary, description, tags, content, hash, words)
       select $1, r.operation, r.method, r.path, r.operation_id, r.summary, r.description,
         array(select jsonb_array_elements_text(r.tags)), r.content, r.hash,
         setweight(to_tsvector('english', r.head), 'A') || setweight(to_tsvector('english', r.content), 'C')
       from jsonb_to_recordset($2::jsonb) as r
         (operation text, method text, path text, operation_id text, summary text, description text, tags jsonb,
          content text, hash text, head text)
       on conflict (spec_id, operation) do update
       set operation_id = excluded.operation_id, summary = excluded.summary, description = excluded.description,
         tags = excluded.tags, content = excluded.content, hash = excluded.hash, words = excluded.words
       where (o.hash, o.operation_id, o.summary, o.description, o.tags)
         is distinct from (excluded.hash, excluded.operation_id, excluded.summary, excluded.description, excluded.tags)`,
      [spec, JSON.stringify(list.slice(place, place + ROWS))],
    );
  }
  await tx.query("update :schema.catalog_specs set operation_count = $2 where id = $1", [spec, list.length]);
}
