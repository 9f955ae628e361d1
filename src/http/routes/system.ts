// /api/v1/overview, /api/v1/me and /api/v1/system.
import type { Holdfast } from "../../client/client.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import { kindWarnings } from "../../job/warnings.ts";
import { version } from "../../shared/version.ts";
import { type SettingView, systemContracts } from "../contracts/system.ts";
import { iso } from "../job-view.ts";
import { route } from "./route.ts";

export interface SystemRoutesInput {
  hf: Holdfast;
  kinds: readonly AnyJobKind[];
  environment: string | undefined;
  settings: readonly SettingView[] | undefined;
}

export function makeSystemRoutes({ hf, kinds, environment, settings }: SystemRoutesInput) {
  const place = { version: version(), tier: hf.tier, environment: environment ?? null };
  return {
    readOverview: route(systemContracts.readOverview, async () => ({ body: await hf.problems() })),
    readMe: route(systemContracts.readMe, async (_, { caller: { name, role } }) => ({
      body: { name, role, ...place },
    })),
    readSystem: route(systemContracts.readSystem, async (_, { caller: { name, role } }) => {
      const { database, migrations, tables } = await hf.system();
      return {
        body: {
          ...place,
          node: process.version,
          schema: hf.schema,
          caller: { name, role },
          database: { ...database, now: database.now.toISOString() },
          migrations: migrations.map((each) => ({ ...each, appliedAt: each.appliedAt.toISOString() })),
          tables: tables.map((table) => ({ ...table, vacuumedAt: iso(table.vacuumedAt) })),
          settings: settings ? [...settings] : null,
          warnings: kindWarnings(kinds),
        },
      };
    }),
  };
}
