// A Holdfast on each tier for tests. useHoldfast("server") has a database of its own on the run's PostgreSQL;
// useHoldfast("embedded") has a folder of its own, copied from one that was initialised before: making a fresh one
// takes seconds. After the last test of its describe the tables are checked and everything is closed and removed.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { Db } from "#src/db/db.js";
import type { Store } from "#src/store/sql.js";
import { openTest, partsOf, type OpenTestOptions, type TestHoldfast } from "#src/testing/open-test.js";
import { assertSound } from "./assert-sound.ts";
import { createMigratedDatabase } from "./database.ts";
import { copyInitialised } from "./initialised.ts";
import { keepEngine } from "./quick-engine.ts";
import { quickFolder } from "./quick-folder.ts";

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
  const home = quickFolder("holdfast-test-");
  const folder = join(home, "data");
  await Promise.all([copyInitialised(folder), keepEngine()]);
  return { url: `embedded:${folder}`, remove: () => rm(home, { recursive: true, force: true }) };
}
