// The same on the other PostgreSQL majors that are supported: everybody's statements in every order, and simulated schedules
// with faults. npm brings all of them.
import { afterEach, describe, expect, test } from "vitest";
import { saveResult } from "../support/history/save-result.ts";
import { binariesOf, startPostgres } from "../support/postgres-server.mjs";
import { seedFrom } from "../support/random.ts";
import { tryAllOrders, VARIANTS } from "./interleavings.ts";
import { openSimServer, type SimDatabase } from "./simulation/database.ts";
import { simulate } from "./simulation/simulate.ts";

const START_MS = Date.UTC(2030, 0, 1, 12);
const SEEDS = Number(process.env["SIM_SEEDS"] ?? 30);
const MAJORS = [14, 15, 16, 17];

let server: Awaited<ReturnType<typeof startPostgres>> | undefined;
let database: SimDatabase | undefined;
afterEach(async () => {
  await database?.close();
  await server?.remove();
  database = server = undefined;
});

describe.each(MAJORS)("PostgreSQL %i", (major) => {
  test(
    `two actors in every order, and ${SEEDS} schedules with faults`,
    { timeout: 120_000 + SEEDS * 5_000 },
    async () => {
      server = await startPostgres({ bin: binariesOf(major) });
      database = await openSimServer(START_MS, server.url());
      const { rows } = await database.query<{ version: string }>("select current_setting('server_version') as version");
      expect(rows[0]!.version).toMatch(new RegExp(`^${major}\\.`));
      for (const variant of VARIANTS) expect((await tryAllOrders(database, START_MS, variant, 2)).orders).toBe(20);
      const first = seedFrom(process.env["FAULT_SEED"]);
      process.stderr.write(`FAULT_SEED=${first}\n`);
      const violations: string[] = [];
      const courses = new Set<string>();
      for (let seed = first; seed < first + SEEDS; seed += 1) {
        const result = await simulate(database, seed, START_MS);
        courses.add(`${result.hash} ${result.statements}`);
        violations.push(...result.violations.map((violation) => `seed ${seed}: ${violation}`));
      }
      await saveResult(`postgres-${major}`, first, { schedules: SEEDS, courses: courses.size, violations });
      expect(violations).toEqual([]);
    },
  );
});
