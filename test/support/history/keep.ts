// A whole run in one file, so that anybody can judge it again: the history as it was written, what the judge was told to expect,
// what others found beside the judge, and the facts of the database, in slices, column by column. One JSON line each, compressed. Ids are
// renamed throughout (j1, j2 …; tokens t1, t2 …; transactions x1, x2 …): the judge only asks which are the same, and random
// ones do not compress. Numbers that grow are written as steps from the one before.
//
// What is read judges as what was written.
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, gunzipSync } from "node:zlib";
import type { Facts } from "./facts.ts";
import type { Expectations } from "./judge.ts";
import type { Line } from "./record.ts";

export interface Run {
  lines: readonly Line[];
  facts: Facts;
  expected: Expectations;
  /** Sentences of others than the judge. */
  beside: readonly string[];
}

type Value = string | number | boolean | null;
type Row = Record<string, Value>;
type Rename = (value: string) => string;

const ROWS_PER_LINE = 1_000;

/** Which columns are ids of jobs, batches and parcels, and which are tokens. */
const IDS = new Set(["id", "job", "follows"]);
const TOKENS = new Set(["token", "resultToken"]);
const TRANSACTION = "xact";
const NUMBER = "seq";

function toSteps(values: readonly number[]): number[] {
  return values.map((value, at) => value - (values[at - 1] ?? 0));
}
function fromSteps(steps: readonly Value[]): number[] {
  let sum = 0;
  return steps.map((step) => (sum += Number(step)));
}

function shortNames(letter: string): Rename {
  const names = new Map<string, string>();
  return (value) => {
    const name = names.get(value) ?? `${letter}${names.size + 1}`;
    names.set(value, name);
    return name;
  };
}

const pairs = (map: ReadonlyMap<string, Value>, key: string, value: string): Row[] =>
  [...map].map(([a, b]) => ({ [key]: a, [value]: b }));
const idsOf = (list: Iterable<string>): Row[] => [...list].map((job) => ({ job }));

/** All facts as tables. */
function tablesOf(facts: Facts): Record<keyof Facts, Row[]> {
  const rows = (list: readonly object[]): Row[] => list.map((row) => ({ ...row }));
  return {
    jobs: rows(facts.jobs),
    audit: rows(facts.audit),
    execs: rows(facts.execs),
    effects: rows(facts.effects),
    charged: pairs(facts.charged, "job", "count"),
    troubled: pairs(facts.troubled, "job", "count"),
    charges: rows(facts.charges),
    holders: pairs(facts.holders, "token", "worker"),
    keys: pairs(facts.keys, "key", "job"),
    purged: pairs(facts.purged, "job", "n"),
    purgedEarly: idsOf(facts.purgedEarly),
    followers: pairs(facts.followers, "job", "count"),
    batches: rows(facts.batches),
    parcels: rows(facts.parcels),
  };
}

function factsOf(tables: ReadonlyMap<string, Row[]>): Facts {
  const rows = <T>(name: keyof Facts): T[] => (tables.get(name) ?? []) as T[];
  const counts = (name: keyof Facts): Map<string, number> =>
    new Map(rows<{ job: string; count: number }>(name).map(({ job, count }) => [job, count]));
  const jobs = (name: keyof Facts): string[] => rows<{ job: string }>(name).map(({ job }) => job);
  return {
    jobs: rows("jobs"),
    audit: rows("audit"),
    execs: rows("execs"),
    effects: rows("effects"),
    charged: counts("charged"),
    troubled: counts("troubled"),
    charges: rows("charges"),
    holders: new Map(rows<{ token: string; worker: string }>("holders").map(({ token, worker }) => [token, worker])),
    keys: new Map(rows<{ key: string; job: string }>("keys").map(({ key, job }) => [key, job])),
    purged: new Map(rows<{ job: string; n: number }>("purged").map(({ job, n }) => [job, n])),
    purgedEarly: jobs("purgedEarly"),
    followers: counts("followers"),
    batches: rows("batches"),
    parcels: rows("parcels"),
  };
}

function* linesOf({ lines, facts, expected, beside }: Run): Generator<object> {
  const idOf = shortNames("j");
  const tokenOf = shortNames("t");
  const transactionOf = shortNames("x");
  yield { expected, beside };
  for (const line of lines) yield "ids" in line ? { ...line, ids: line.ids.map(idOf) } : line;
  const renamed = (column: string, value: Value): Value => {
    if (typeof value !== "string") return value;
    return IDS.has(column) ? idOf(value) : TOKENS.has(column) ? tokenOf(value) : value;
  };
  const written = (column: string, values: readonly Value[]): Value[] => {
    if (column === NUMBER) return toSteps(values.map(Number));
    if (column === TRANSACTION) return toSteps(values.map((value) => Number(transactionOf(String(value)).slice(1))));
    return values.map((value) => renamed(column, value));
  };
  for (const [name, rows] of Object.entries(tablesOf(facts))) {
    // Also when it is empty: a file in which a table is missing was cut off.
    const names = Object.keys(rows[0] ?? {});
    for (let from = 0; from === 0 || from < rows.length; from += ROWS_PER_LINE) {
      const slice = rows.slice(from, from + ROWS_PER_LINE);
      const columns = names.map((column) => [
        column,
        written(
          column,
          slice.map((row) => row[column]!),
        ),
      ]);
      yield { facts: name, rows: slice.length, columns: Object.fromEntries(columns) as object };
    }
  }
  yield { end: true };
}

export async function keepRun(path: string, run: Run): Promise<void> {
  const text = new PassThrough();
  const written = pipeline(text, createGzip({ level: 9 }), createWriteStream(path));
  for (const line of linesOf(run)) if (!text.write(`${JSON.stringify(line)}\n`)) await once(text, "drain");
  text.end();
  await written;
}

type Kept =
  | Line
  | { expected: Expectations; beside: string[] }
  | { facts: string; rows: number; columns: Record<string, Value[]> }
  | { end: true };

function read(column: string, values: Value[]): Value[] {
  if (column === NUMBER) return fromSteps(values);
  return column === TRANSACTION ? fromSteps(values).map((number) => `x${number}`) : values;
}

/** Throws if it is not a whole run: histories of old had no facts. */
export function readRun(path: string): Run {
  const lines: Line[] = [];
  const tables = new Map<string, Row[]>();
  let about: { expected: Expectations; beside: string[] } | undefined;
  let isWhole = false;
  for (const text of gunzipSync(readFileSync(path)).toString().trimEnd().split("\n")) {
    const line = JSON.parse(text) as Kept;
    if ("expected" in line) about = line;
    else if ("end" in line) isWhole = true;
    else if ("facts" in line) {
      const { facts: name, rows } = line;
      const table = tables.get(name) ?? [];
      const columns = Object.entries(line.columns).map(([column, values]): [string, Value[]] => [
        column,
        read(column, values),
      ]);
      for (let at = 0; at < rows; at += 1)
        table.push(Object.fromEntries(columns.map(([column, of]) => [column, of[at]!])));
      tables.set(name, table);
    } else lines.push(line);
  }
  if (!about || !isWhole) throw new Error("it has no facts, or not all of them");
  return { lines, facts: factsOf(tables), ...about };
}
