// The app as somebody has it: on a real database, behind its HTTP server, with a worker, and people who call it.
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type AnyJobKind, prepareApps, startApps } from "holdfast";
import { serve } from "holdfast/http";
import type { TestHoldfast } from "holdfast/testing";
import { chatUploads, type ChatUploadsOptions, pullWorkspace, type PullOptions } from "../src/index.ts";

export const ADMIN = "a-token-for-the-chat-tests";

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
export const someBytes = (size: number): Buffer => randomBytes(size);

export interface Answer {
  status: number;
  headers: Headers;
  bytes: Buffer;
  // What a route answers is looked at, field by field, by the tests.
  // oxlint-disable-next-line typescript/no-explicit-any -- what comes over the wire is compared, not used
  json: any;
}

export interface NewFile {
  name: string;
  content: string | Uint8Array;
  type?: string;
}

export interface Scene {
  readonly url: string;
  readonly kinds: AnyJobKind[];
  call(
    method: string,
    path: string,
    options?: { token?: string | null; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answer>;
  /** Registers one that polls, unless told otherwise. */
  register(more?: object): Promise<{ id: string; token: string }>;
  upload(
    id: string,
    files: NewFile[],
    options?: { token?: string | null; field?: string; query?: string },
  ): Promise<Answer>;
  say(id: string, text: string, uris?: string[]): Promise<Answer>;
  pull(workspace: { id: string; token: string }, more?: Partial<PullOptions>): ReturnType<typeof pullWorkspace>;
  folder(): Promise<string>;
}

export async function openScene(
  hf: TestHoldfast,
  options: ChatUploadsOptions = {},
  mode: "dev" | "program" = "program",
): Promise<Scene> {
  const app = chatUploads(options);
  const kinds = await prepareApps(hf, [app]);
  const server = await serve({ hf, kinds, apps: [app], port: 0, token: ADMIN });
  const stopApps = await startApps(hf, [app], { mode, url: server.url });
  const folders: string[] = [];
  afterAll(async () => {
    await stopApps();
    await server.close();
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
  });
  const scene: Scene = {
    url: server.url,
    kinds,
    call: (method, path, more) => call(server.url, method, path, more),
    async register(more = { delivery_mode: "poll" }) {
      const { status, json } = await scene.call("POST", "/workspaces", { body: { name: "laptop", ...more } });
      if (status !== 201) throw new Error(JSON.stringify(json));
      return { id: String(json.id), token: String(json.token) };
    },
    upload: (id, files, { token = ADMIN, field = "files", query = "" } = {}) =>
      call(server.url, "POST", `/workspaces/${id}/chat/uploads${query}`, { token, body: toForm(files, field) }),
    say: (id, text, uris = []) =>
      scene.call("POST", `/workspaces/${id}/chat/messages`, { body: { text, files: uris } }),
    async pull(workspace, more = {}) {
      const into = more.into ?? (await scene.folder());
      return await pullWorkspace({
        url: server.url,
        workspace: workspace.id,
        token: workspace.token,
        once: true,
        ...more,
        into,
      });
    },
    async folder() {
      const folder = await mkdtemp(join(tmpdir(), "chat-uploads-"));
      folders.push(folder);
      return folder;
    },
  };
  return scene;
}

export function toForm(files: NewFile[], field = "files"): FormData {
  const form = new FormData();
  for (const { name, content, type = "text/plain" } of files) {
    form.append(field, new File([content], name, { type }));
  }
  return form;
}

export async function call(
  url: string,
  method: string,
  path: string,
  {
    token = ADMIN,
    body,
    headers = {},
  }: { token?: string | null; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const isRaw = body instanceof FormData || typeof body === "string" || body === undefined;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(isRaw ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: isRaw ? (body ?? null) : JSON.stringify(body),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString());
  } catch {
    json = undefined;
  }
  return { status: response.status, headers: response.headers, bytes, json };
}

export const idIn = (uri: string): string => uri.split("/").at(-1)!;
