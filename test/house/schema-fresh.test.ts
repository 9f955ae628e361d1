// The generated module of migrations must be what migrations/*.sql say today: it is what an installed package runs.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderMigrations } from "../../scripts/build-migrations.mjs";
import { root } from "./sources.ts";

test("src/migrate/migrations.generated.ts is what migrations/*.sql say", () => {
  const path = join(root, "src", "migrate", "migrations.generated.ts");
  const generated = existsSync(path) ? readFileSync(path, "utf8") : "(missing)";
  expect(
    generated === renderMigrations(),
    "src/migrate/migrations.generated.ts is stale: run `npm run build` and commit it",
  ).toBe(true);
});
