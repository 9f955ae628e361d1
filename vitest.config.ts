// One real PostgreSQL for the whole run (test/support/global-setup.ts). Two workers: the tests share two cores with it.
import { defineConfig } from "vitest/config";
import { BUILT } from "./test/support/built.ts";
import { QUICK_ENGINE } from "./test/support/quick-engine.ts";
import { Spread } from "./test/support/spread.ts";
import { TriedAgain } from "./test/support/tried-again.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "apps/*/test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // The files of a worker share its process. One for each file takes a second of processor time more, three hundred times.
    isolate: false,
    maxWorkers: 2,
    execArgv: QUICK_ENGINE,
    server: { deps: { external: [BUILT] } },
    sequence: { sequencer: Spread },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A second, the default, is one refresh of the dashboard.
    expect: { poll: { timeout: 8_000 } },
    // Crash and lease tests measure time on shared machines. In continuous integration a test may be tried again, and those
    // that were are named at the end.
    reporters: ["default", new TriedAgain()],
    retry: process.env["CI"] === "true" ? 2 : 0,
  },
});
