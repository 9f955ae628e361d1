// What a database role needs to be told, for each of three duties. Run by the role that migrates, which owns the tables.
//
// work: everything but changing the schema; what only an owner can do (making and dropping days of the history) is done
// on its behalf by routines that do nothing else. enqueue: hands jobs over and looks at them. view: looks only.
import { OptionInvalid } from "../errors.ts";
import { quoteSchema } from "../shared/quote-schema.ts";

export const DUTIES = ["work", "enqueue", "view"] as const;
export type Duty = (typeof DUTIES)[number];

/** Which version a schema has is for those who migrate to say. */
const LEDGERS = ["migrations", "app_migrations"];
/** What an enqueue writes: the job, its key, its group; and, where it coalesces with a job that runs, that this one does. */
const ENQUEUED: Readonly<Record<string, string>> = {
  jobs: "insert, update",
  job_keys: "insert, update",
  job_groups: "insert, update",
  leases: "update",
};

function quoteRole(role: string): string {
  const bytes = Buffer.byteLength(role);
  if (bytes >= 1 && bytes <= 63 && !role.includes("\0")) return `"${role.replaceAll('"', '""')}"`;
  throw new OptionInvalid(`The role is ${JSON.stringify(role)}.`, "Give the name of a role: 1 to 63 bytes.");
}

export function grantsSql(schema: string, role: string, duty: Duty): string {
  const [inSchema, to] = [quoteSchema(schema), quoteRole(role)];
  const tables = (names: readonly string[]): string => names.map((name) => `${inSchema}.${name}`).join(", ");
  const rights = duty === "work" ? "select, insert, update, delete" : "select";
  return [
    `grant usage on schema ${inSchema} to ${to};`,
    `grant execute on all functions in schema ${inSchema} to ${to};`,
    `grant ${rights} on all tables in schema ${inSchema} to ${to};`,
    // Tables of later versions, and the days of the history to come.
    `alter default privileges in schema ${inSchema} grant ${rights} on tables to ${to};`,
    `alter default privileges in schema ${inSchema} grant execute on functions to ${to};`,
    ...(duty === "work" ? [`revoke insert, update, delete on ${tables(LEDGERS)} from ${to};`] : []),
    // Neither has anything to do with who may call the HTTP API.
    ...(duty === "work" ? [] : [`revoke select on ${tables(["access_tokens", "audit", "secrets"])} from ${to};`]),
    ...(duty === "enqueue"
      ? Object.entries(ENQUEUED).map(([table, may]) => `grant ${may} on ${tables([table])} to ${to};`)
      : []),
  ].join("\n");
}
