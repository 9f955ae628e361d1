// How values of PostgreSQL arrive: the mapping promised in db.ts. What is not listed arrives as PostgreSQL writes it:
// int8, numeric, uuid, date, timestamp without time zone, interval are strings.
//
// The table is our own and is given to each client: another part of the process may have changed pg's global parsers.
import { type CustomTypesConfig, types as pgTypes } from "pg";

type Parse = (text: string) => unknown;

const asIs: Parse = (text) => text;

/** The oid of a type and of its array, as in pg_type.dat. */
const TYPES: readonly (readonly [name: string, oid: number, arrayOid: number, parse: Parse])[] = [
  ["bool", 16, 1000, (text) => text === "t"],
  ["bytea", 17, 1001, parseBytea],
  ["int8", 20, 1016, asIs],
  ["int2", 21, 1005, Number],
  ["int4", 23, 1007, Number],
  ["text", 25, 1009, asIs],
  ["oid", 26, 1028, Number],
  ["json", 114, 199, (text) => JSON.parse(text)],
  ["float4", 700, 1021, Number],
  ["float8", 701, 1022, Number],
  ["varchar", 1043, 1015, asIs],
  ["date", 1082, 1182, asIs],
  ["timestamp", 1114, 1115, asIs],
  ["timestamptz", 1184, 1185, parseTimestamptz],
  ["numeric", 1700, 1231, asIs],
  ["uuid", 2950, 2951, asIs],
  ["jsonb", 3802, 3807, (text) => JSON.parse(text)],
];

/** `object`, because pg's types describe the array parser of another version. */
const registry: object = pgTypes;
const arrays: { create(text: string, parse: Parse): { parse(): unknown[] } } = Reflect.get(registry, "arrayParser");

const parsers = new Map<number, Parse>();
for (const [, oid, arrayOid, parse] of TYPES) {
  parsers.set(oid, parse);
  parsers.set(arrayOid, (text) => arrays.create(text, parse).parse());
}

export const types: CustomTypesConfig = { getTypeParser: (oid: number) => parsers.get(oid) ?? asIs };

/** "2026-11-16 03:35:32.123456+05:30". Years of more than four digits and BC have no place in it. */
const TIMESTAMPTZ = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?$/;

function parseTimestamptz(text: string): Date | number {
  // V8 reads this form by itself, at half the cost; it would take the year 0044 for 2044, hence the first test.
  if (text[0] !== "0" && text[4] === "-" && text[10] === " ") {
    const date = new Date(text);
    if (!Number.isNaN(date.getTime())) return date;
  }
  const match = TIMESTAMPTZ.exec(text);
  if (!match) {
    if (text === "infinity") return Infinity;
    if (text === "-infinity") return -Infinity;
    throw new RangeError(
      `PostgreSQL sent the timestamp ${JSON.stringify(text)}: only the years 0001 to 9999, in DateStyle ISO, are understood.`,
    );
  }
  const [, year, month, day, hour, minute, second, fraction = "", sign, zoneHours, zoneMinutes, zoneSeconds] = match;
  const zone = (Number(zoneHours) * 3_600 + Number(zoneMinutes ?? 0) * 60 + Number(zoneSeconds ?? 0)) * 1_000;
  const date = new Date(0);
  // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  date.setUTCHours(Number(hour), Number(minute), Number(second), Number(fraction.slice(0, 3).padEnd(3, "0")));
  return new Date(date.getTime() + (sign === "-" ? zone : -zone));
}

function parseBytea(text: string): Buffer {
  if (text.startsWith("\\x")) return Buffer.from(text.slice(2), "hex");
  // bytea_output = escape, which a database or a role may have set.
  const bytes = text.replace(/\\(\\|[0-7]{3})/g, (_, code: string) =>
    code === "\\" ? code : String.fromCharCode(Number.parseInt(code, 8)),
  );
  return Buffer.from(bytes, "latin1");
}
