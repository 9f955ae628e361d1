// The catalog as somebody has it: the app on a real database, its HTTP server, a worker, and an embedder over HTTP.
import { afterAll } from "vitest";
import { type AnyJobKind, type App, type Holdfast, prepareApps, startApps, type Worker } from "holdfast";
import { serve } from "holdfast/http";
import { until } from "../../../test/support/until.ts";
import { apiCatalog, type CatalogOptions } from "../src/index.ts";

export const ADMIN = "a-token-for-the-catalog-tests";

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not used
export type Json = any;

export interface Scene {
  readonly url: string;
  readonly app: App;
  readonly kinds: AnyJobKind[];
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: Json }>;
  work(): Promise<Worker>;
  stopWork(): Promise<void>;
  /** When the spec's badge says so. */
  reaches(spec: string, state: string, withinMs?: number): Promise<Json>;
}

export const CATALOG = "main";

export async function openScene(hf: Holdfast, options: CatalogOptions & { works?: boolean } = {}): Promise<Scene> {
  const { works = true, ...given } = options;
  const app = apiCatalog({ ladder: ["100ms"], leaseDuration: "5s", embedTimeout: "2s", ...given }, {});
  const kinds = await prepareApps(hf, [app]);
  const server = await serve({ hf, kinds, apps: [app], port: 0, token: ADMIN });
  const stopApps = await startApps(hf, [app], { url: server.url });
  let worker: Worker | undefined;
  const scene: Scene = {
    url: server.url,
    app,
    kinds,
    async call(method, path, body) {
      const answer = await fetch(`${server.url}/api-catalogs${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      return { status: answer.status, body: await answer.json() };
    },
    async work() {
      worker ??= await hf.work(kinds);
      return worker;
    },
    async stopWork() {
      await worker?.stop();
      worker = undefined;
    },
    async reaches(spec, state, withinMs) {
      return await until(
        `${spec} to be ${state}`,
        async () => {
          const { body } = await scene.call("GET", `/${CATALOG}/embedding-status`);
          const found = body.specs.find(({ name }: { name: string }) => name === spec);
          return found?.state === state ? found : undefined;
        },
        withinMs,
      );
    },
  };
  if (works) await scene.work();
  await scene.call("POST", "", { id: CATALOG });
  afterAll(async () => {
    await scene.stopWork();
    await stopApps();
    await server.close();
  });
  return scene;
}

/** A document with so many operations; `about` changes what the nth says. */
export function makeDocument(count: number, about: (n: number) => string = (n) => `thing number ${n}`): object {
  const paths = Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      `/things/${String(n).padStart(4, "0")}`,
      { get: { operationId: `getThing${n}`, summary: `Reads ${about(n)}`, responses: { 200: { description: "ok" } } } },
    ]),
  );
  return { openapi: "3.0.3", info: { title: "Things", version: "1" }, paths };
}
