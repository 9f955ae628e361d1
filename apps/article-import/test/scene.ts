// The importer as somebody has it: the app on a real database, its HTTP server, a worker, and the sample site.
import { afterAll } from "vitest";
import { type AnyJobKind, prepareApps, startApps, type Worker } from "holdfast";
import { serve } from "holdfast/http";
import type { TestHoldfast } from "holdfast/testing";
import { until } from "../../../test/support/until.ts";
import { type Article, articleImport, type ImportOptions, SampleSite } from "../src/index.ts";

export const ADMIN = "a-token-for-the-importer-tests";

// oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not used
type Json = any;

export interface Answer {
  status: number;
  body: Json;
}

export interface Device {
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Takes everything that waits, as the page does, and says what it came to. */
  takeAll(device: string): Promise<Article[]>;
}

export interface Scene extends Device {
  readonly url: string;
  readonly site: SampleSite;
  readonly kinds: AnyJobKind[];
  readonly worker: Worker | undefined;
  /** With a token that is bound to this owner. */
  as(owner: string): Promise<Device>;
}

export interface SceneOptions extends ImportOptions {
  works?: boolean;
  env?: Record<string, string>;
  slowMs?: number;
}

export async function openScene(hf: TestHoldfast, options: SceneOptions = {}): Promise<Scene> {
  const { works = true, env = {}, slowMs = 300, ...given } = options;
  const site = await SampleSite.start({ port: 0, slowMs });
  const allowOrigins = [site.url];
  const app = articleImport({ hostDelay: "0s", perHost: 10, ladder: ["1s", "1s"], allowOrigins, ...given }, env);
  const kinds = await prepareApps(hf, [app]);
  const server = await serve({ hf, kinds, apps: [app], port: 0, token: ADMIN });
  const stopApps = await startApps(hf, [app], { url: server.url });
  const worker = works && kinds.length > 0 ? await hf.work(kinds) : undefined;
  afterAll(async () => {
    await worker?.stop();
    await stopApps();
    await server.close();
    await site.close();
  });
  const device = (token: string): Device => makeDevice(server.url, token);
  return {
    ...device(ADMIN),
    url: server.url,
    site,
    kinds,
    worker,
    async as(owner) {
      const { token } = await hf.tokens.create({ name: owner, role: "operator", owner });
      return device(token);
    },
  };
}

function makeDevice(url: string, token: string): Device {
  const call: Device["call"] = async (method, path, body) => {
    const answer = await fetch(`${url}/article-import${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  };
  return {
    call,
    async takeAll(device) {
      const taken: Article[] = [];
      const { body } = await call("GET", "/pickups");
      for (const { id, batch, seq } of body.pickups as { id: string; batch: string; seq: number }[]) {
        const { status, body: article } = await call("GET", `/pickups/${id}`);
        if (status !== 200) continue;
        const outcome = article.warning ?? "saved";
        await call("POST", `/imports/${batch}/items/${seq}/ack`, { outcome, device, url: article.url });
        taken.push(article as Article);
      }
      return taken;
    },
  };
}

export async function importOf(device: Device, links: readonly string[], more: object = {}): Promise<string> {
  const { status, body } = await device.call("POST", "/imports", { text: links.join("\n"), ...more });
  if (status > 201) throw new Error(JSON.stringify(body));
  return body.id as string;
}

/** What each link came to, once the server's part of all of them is over. */
export async function served(device: Device, id: string, withinMs = 20_000): Promise<Json[]> {
  await until(
    `the server's part of ${id}`,
    async () => {
      const { counts } = (await device.call("GET", `/imports/${id}`)).body;
      return counts.pending + counts.running === 0;
    },
    withinMs,
  );
  return (await device.call("GET", `/imports/${id}/items`)).body.items;
}
