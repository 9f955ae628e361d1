// /api/v1/apps.
import type { App } from "../../apps/define-app.ts";
import { appContracts } from "../contracts/apps.ts";
import { route } from "./route.ts";

export function makeAppListRoutes(apps: readonly App[]) {
  return {
    listApps: route(appContracts.listApps, async () => ({ body: { apps: apps.map(toView) } })),
  };
}

function toView({ name, page, routes = [] }: App) {
  return {
    name,
    title: page?.title ?? name,
    page: page ? `/apps/${name}/` : null,
    routes: routes.map(({ method, path }) => ({ method, path })),
  };
}
