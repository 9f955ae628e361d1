// What a crash may have left behind in the files of a database, beyond what any rule about rows would see: PostgreSQL's own `amcheck` looks whether
// every index has its entries in order and one for each row, and whether every row and what it refers to can be read.

export interface Asker {
  query<Row>(text: string, values?: unknown[]): Promise<{ rows: Row[] }>;
}

/** Of PostgreSQL's own tables too: those are written with every table that is made or dropped. */
const INDEXES = `
select c.oid::integer as oid, c.oid::regclass::text as name from pg_index i join pg_class c on c.oid = i.indexrelid
join pg_am a on a.oid = c.relam
where a.amname = 'btree' and i.indisvalid and i.indisready and c.relkind = 'i' and c.relpersistence <> 't' order by c.oid`;
const TABLES = `
select c.oid::integer as oid, c.oid::regclass::text as name from pg_class c
where c.relkind in ('r', 'm', 't') and c.relpersistence <> 't' order by c.oid`;

/** Sentences about what is damaged, and how many indexes and tables were looked at. Nobody may be writing. */
export async function findDamage(db: Asker): Promise<{ looked: number; damage: string[] }> {
  await db.query("create extension if not exists amcheck");
  const damage: string[] = [];
  async function look(what: string, list: string, check: string): Promise<number> {
    const { rows } = await db.query<{ oid: number; name: string }>(list);
    for (const { oid, name } of rows) {
      try {
        const found = await db.query<{ msg?: string }>(check, [oid]);
        for (const { msg } of found.rows) if (msg !== undefined) damage.push(`${what} ${name}: ${msg}`);
      } catch (error) {
        damage.push(`${what} ${name}: ${(error as Error).message}`);
      }
    }
    return rows.length;
  }
  const indexes = await look("index", INDEXES, "select bt_index_parent_check($1::oid, true, true)");
  const tables = await look("table", TABLES, "select msg from verify_heapam($1::oid::regclass) limit 3");
  return { looked: indexes + tables, damage };
}
