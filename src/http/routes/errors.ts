// /api/v1/errors and /api/v1/dead.
import type { Holdfast } from "../../client/client.ts";
import { errorContracts } from "../contracts/errors.ts";
import { route } from "./route.ts";

export function makeErrorRoutes(hf: Holdfast) {
  return {
    listErrorGroups: route(errorContracts.listErrorGroups, async ({ query }) => ({
      body: {
        errors: (await hf.errors.list(query)).map((group) => ({
          ...group,
          firstSeenAt: group.firstSeenAt.toISOString(),
          lastSeenAt: group.lastSeenAt.toISOString(),
        })),
      },
    })),
    listDead: route(errorContracts.listDead, async ({ query }) => ({
      body: {
        groups: (await hf.errors.dead(query)).map((group) => ({ ...group, lastAt: group.lastAt.toISOString() })),
      },
    })),
  };
}
