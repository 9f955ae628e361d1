// A Holdfast on each tier for tests. useHoldfast("server") has a database of its own on the run's PostgreSQL;
// useHoldfast("embedded") has a folder of its own, copied from one that was initialised before: making a fresh one
// takes seconds. After the last test of its describe the tables are checked and everything is closed and removed.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";
import type { Db } from "#src/db/db.js";
import { MIGRATIONS } from "#src/migrate/migrations.generated.js";
import { open } from "#src/open.js";
import type { Store } from "#src/store/sql.js";
import { openTest, partsOf, type OpenTestOptions, type TestHoldfast } from "#src/testing/open-test.js";
import { assertSound } from "./assert-sound.ts";
import { createMigratedDatabase } from "./database.ts";

const execute = promisify(execFile);

export type Tier = "server" | "embedded";
export const TIERS: Tier[] = ["server", "embedded"];

export interface Bench {
  readonly hf: TestHoldfast;
  readonly db: Db;
  readonly store: Store;
  /** Where it is, for a second client (server) or a second opening (embedded, after close). */
  readonly url: string;
  /** Another client on the same database, closed at the end. Server tier only: an embedded folder has one process. */
  another(options?: OpenTestOptions): Promise<TestHoldfast>;
}

interface Place {
  url: string;
  remove(): Promise<void>;
}

/** Call it inside a describe. What it returns is filled before the first test. */
export function useHoldfast(tier: Tier, options: OpenTestOptions = {}): Bench {
  let place: Place | undefined;
  let first: TestHoldfast | undefined;
  const others: TestHoldfast[] = [];

  beforeAll(async () => {
    place = tier === "server" ? await serverPlace() : await embeddedPlace();
    first = await openTest({ database: place.url, ...options });
  });

  afterAll(async () => {
    try {
      await Promise.all(others.map((other) => other.close()));
      if (first) await soundThenClosed(first);
    } finally {
      await first?.close();
      await place?.remove();
    }
  });

  return {
    get hf() {
      return given(first);
    },
    get db() {
      return partsOf(given(first)).db;
    },
    get store() {
      return partsOf(given(first)).store;
    },
    get url() {
      return given(place).url;
    },
    async another(more = {}) {
      const other = await openTest({ database: given(place).url, ...options, ...more });
      others.push(other);
      return other;
    },
  };
}

async function soundThenClosed(hf: TestHoldfast): Promise<void> {
  const { db, store } = partsOf(hf);
  // A test may have closed it.
  const isOpen = await db.query("select 1").then(
    () => true,
    () => false,
  );
  if (isOpen) await assertSound(db, store.schema);
}

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("useHoldfast() is filled by a beforeAll hook; use it inside a test.");
  return value;
}

async function serverPlace(): Promise<Place> {
  const database = await createMigratedDatabase();
  return { url: database.url, remove: () => database.drop() };
}

async function embeddedPlace(): Promise<Place> {
  const home = await mkdtemp(join(tmpdir(), "holdfast-test-"));
  const folder = join(home, "data");
  // Node's own cp takes ten times the processor time for these thousand files.
  await execute("cp", ["-R", await initialisedFolder(), folder]);
  return { url: `embedded:${folder}`, remove: () => rm(home, { recursive: true, force: true }) };
}

/** One per version of the migrations, kept between runs. Two processes that make it at once: the first one stays. */
async function initialisedFolder(): Promise<string> {
  const version = createHash("sha256").update(JSON.stringify(MIGRATIONS)).digest("hex").slice(0, 12);
  const ready = join(tmpdir(), `holdfast-initialised-${process.getuid?.() ?? 0}-${version}`);
  if (await exists(ready)) return ready;
  const staging = await mkdtemp(join(tmpdir(), "holdfast-initialising-"));
  const folder = join(staging, "data");
  await mkdir(folder);
  const hf = await open({ database: `embedded:${folder}` });
  await hf.close();
  try {
    await rename(folder, ready);
  } catch (error) {
    if (!(await exists(ready))) throw error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return ready;
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
