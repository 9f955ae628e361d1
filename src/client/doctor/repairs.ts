// What can be mended without a person: only what loses nothing, locks nothing for long, and is what Holdfast itself made or
// does anyway. hf.repair(id) does one; the doctor's findings say which there are.
import { OptionInvalid } from "../../errors.ts";
import type { Janitor } from "../../janitor/janitor.ts";
import { expectedObjects } from "../../migrate/expected-objects.ts";
import { createIndex, rebuildIndex, resetAutovacuum, vacuumTable } from "../../store/doctor/repair.ts";
import { readBloated, readNotVacuumed, readObjects } from "../../store/doctor/server-facts.ts";
import type { Store } from "../../store/sql.ts";
import type { Repair } from "./finding.ts";

const make = (id: string, what: string): Repair => ({ id, what });

export const repairs = {
  createIndex: (index: string): Repair => make(`create-index ${index}`, `creates the index ${index}`),
  rebuildIndex: (index: string): Repair => make(`rebuild-index ${index}`, `builds the index ${index} anew`),
  autovacuum: (table: string): Repair => make(`autovacuum ${table}`, `lets autovacuum look after ${table} again`),
  vacuum: (table: string): Repair => make(`vacuum ${table}`, `vacuums ${table}`),
  runChore: (chore: string): Repair => make(`run-chore ${chore}`, `runs the chore ${chore}`),
  runChores: (): Repair => make("run-chores", "runs every chore of the janitor"),
};

/** An index of a partitioned table cannot be made beside its writers. */
export const canCreate = (statement: string): boolean => !/ on (?:only )?:schema\.job_history\b/.test(statement);

export interface RepairInput {
  store: Store;
  janitor: Janitor;
}

/** What it did, as a sentence. */
export type MakeRepair = (id: string) => Promise<string>;

export function makeRepair({ store, janitor }: RepairInput): MakeRepair {
  async function runChores(chore?: string): Promise<string> {
    const results = await janitor.run(chore);
    for (const result of results) {
      if (result.ran && result.error !== null) return `The chore ${result.chore} failed: ${result.error}`;
    }
    return chore === undefined ? `${results.length} chores ran.` : `The chore ${chore} ran.`;
  }

  const known: Record<string, (name: string) => Promise<string | undefined>> = {
    async "create-index"(name) {
      const statement = expectedObjects().indexes.get(name);
      if (statement === undefined || !canCreate(statement)) return undefined;
      if (name in (await readObjects(store)).indexes) return `The index ${name} is there.`;
      await createIndex(store, statement);
      return `The index ${name} is there again.`;
    },
    async "rebuild-index"(name) {
      if (!Object.hasOwn((await readObjects(store)).indexes, name)) return undefined;
      await rebuildIndex(store, name);
      return `The index ${name} was built anew.`;
    },
    async autovacuum(name) {
      if (!(await readNotVacuumed(store)).includes(name)) return undefined;
      await resetAutovacuum(store, name);
      return `Autovacuum looks after ${name} again.`;
    },
    async vacuum(name) {
      if (!(await readBloated(store)).some(({ table }) => table === name)) return undefined;
      await vacuumTable(store, name);
      return `${name} was vacuumed.`;
    },
    async "run-chore"(name) {
      return janitor.chores.some((chore) => chore.name === name) ? await runChores(name) : undefined;
    },
    async "run-chores"(name) {
      return name === "" ? await runChores() : undefined;
    },
  };

  return async (id) => {
    const [, verb = "", name = ""] = /^([a-z-]+)(?: (\S+))?$/.exec(id) ?? [];
    const done = Object.hasOwn(known, verb) ? await known[verb]!(name) : undefined;
    if (done !== undefined) return done;
    throw new OptionInvalid(
      `${JSON.stringify(id.slice(0, 100))} is nothing that can be repaired now.`,
      "Give the id of a repair that the doctor found.",
    );
  };
}
