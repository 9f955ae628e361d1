// What takes longer than `npm test` may: test/**/*.faults.ts, one after the other, each with a server of its own.
import { defineConfig } from "vitest/config";
import { BUILT } from "./support/built.ts";

process.env["TEST_FSYNC"] ??= "on";

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["test/**/*.faults.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    server: { deps: { external: [BUILT] } },
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 120_000,
  },
});
