// Which pgvector this database has, and how far it is prepared. Asked anew for each use: an extension can be dropped, updated
// or installed while the process runs, and the question costs one look into the system tables.
import { createHash } from "node:crypto";
import type { SqlTransaction } from "holdfast";

export interface Pgvector {
  version: string;
  /** Its schema, quoted: its types and operators are always named in full. */
  schema: string;
  /** The column is there: vectors can be kept beside their bytes. */
  hasColumn: boolean;
  /** The index of this model is there and whole. */
  hasIndex: boolean;
  /** Only its owner can change a table. */
  ownsTable: boolean;
}

export interface Available {
  available: string | null;
  installed: string | null;
  mayCreate: boolean;
  mayUse: boolean;
  hasColumn: boolean;
  ownsTable: boolean;
}

export interface VectorModel {
  label: string;
  dimension: number;
}

/** A label ends with its dimension. */
export function vectorModelOf(label: string): VectorModel {
  return { label, dimension: Number(label.slice(label.lastIndexOf(":") + 1)) };
}

/** What an index can be made of; undefined: the dimension, or the age of the extension, allows none. */
export type IndexedAs = "vector" | "halfvec" | undefined;

const OLDEST = "0.5.0";
const HALVES_SINCE = "0.7.0";
const RESUMES_SINCE = "0.8.0";
const MOST_VECTOR = 2_000;
const MOST_HALFVEC = 4_000;

const OWNS_TABLE = `coalesce((
  select pg_has_role(c.relowner, 'usage') from pg_class c where c.oid = to_regclass(':schema.catalog_vectors')), false)`;
const HAS_COLUMN = `exists (
  select 1 from pg_attribute a join pg_type t on t.oid = a.atttypid join pg_extension e on e.extnamespace = t.typnamespace
  where a.attrelid = to_regclass(':schema.catalog_vectors') and a.attname = 'near' and not a.attisdropped
    and t.typname = 'vector' and e.extname = 'vector')`;

/** undefined: there is none, or none that this role may use, or one without HNSW. */
export async function findPgvector(sql: SqlTransaction, model: VectorModel): Promise<Pgvector | undefined> {
  const { rows } = await sql.query<Pgvector>(
    `select e.extversion as version, quote_ident(n.nspname) as schema,
       ${HAS_COLUMN} as "hasColumn", ${OWNS_TABLE} as "ownsTable",
       exists (
         select 1 from pg_index i join pg_class c on c.oid = i.indexrelid
         where i.indrelid = to_regclass(':schema.catalog_vectors') and c.relname = $1 and i.indisvalid) as "hasIndex"
     from pg_extension e join pg_namespace n on n.oid = e.extnamespace
     where e.extname = 'vector' and has_schema_privilege(n.oid, 'usage')`,
    [indexName(model)],
  );
  const found = rows[0];
  return found && isAtLeast(found.version, OLDEST) ? found : undefined;
}

const NONE: Available = {
  available: null,
  installed: null,
  mayCreate: false,
  mayUse: false,
  hasColumn: false,
  ownsTable: false,
};

/** Slower, with files read by the server: for those who prepare, and for people. */
export async function readAvailable(sql: SqlTransaction): Promise<Available> {
  const { rows } = await sql.query<Available>(
    `select a.default_version as available, a.installed_version as installed,
       ${HAS_COLUMN} as "hasColumn", ${OWNS_TABLE} as "ownsTable",
       coalesce((
         select has_schema_privilege(e.extnamespace, 'usage') from pg_extension e where e.extname = 'vector'), false) as "mayUse",
       coalesce((
         select current_setting('is_superuser') = 'on' or not v.superuser
           or (v.trusted and has_database_privilege(current_database(), 'create'))
         from pg_available_extension_versions v
         where v.name = a.name and v.version = a.default_version), false) as "mayCreate"
     from pg_available_extensions a where a.name = 'vector'`,
  );
  return rows[0] ?? NONE;
}

/** Why it is not used, and what to do, in a sentence; null: it is. */
export function whyNot({ available, installed, mayCreate, mayUse, hasColumn, ownsTable }: Available): string | null {
  if (installed !== null && !mayUse) return "pgvector is in a schema that this role may not use.";
  if (installed !== null && !isAtLeast(installed, OLDEST)) {
    return `pgvector ${installed} has no HNSW: run "alter extension vector update" with ${OLDEST} or newer.`;
  }
  if (installed !== null && !hasColumn) {
    return ownsTable
      ? "pgvector is there; the chore catalog-nearest has not prepared it yet."
      : "pgvector is there; the tables must be prepared by a process whose role owns them.";
  }
  if (installed !== null) return null;
  if (available === null) return "This database server has no pgvector.";
  const how = mayCreate ? 'run "create extension vector", or set pgvector: "create"' : "its owner must create it";
  return `pgvector ${available} is there, and not created in this database: ${how}.`;
}

export function indexedAs({ dimension }: VectorModel, version: string): IndexedAs {
  if (dimension <= MOST_VECTOR) return "vector";
  return dimension <= MOST_HALFVEC && isAtLeast(version, HALVES_SINCE) ? "halfvec" : undefined;
}

/** A filtered search goes on until it has enough, instead of ending with what the first look had. */
export const canResume = ({ version }: Pgvector): boolean => isAtLeast(version, RESUMES_SINCE);

export const INDEX_PREFIX = "catalog_near_";

export function indexName({ label }: VectorModel): string {
  return INDEX_PREFIX + createHash("sha256").update(label).digest("hex").slice(0, 16);
}

function isAtLeast(version: string, wanted: string): boolean {
  const [has, needs] = [version, wanted].map((text) => text.split(".").map((part) => Number.parseInt(part, 10) || 0));
  for (let at = 0; at < 3; at += 1) {
    const difference = (has![at] ?? 0) - (needs![at] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
