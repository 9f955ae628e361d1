// Who may do what: every route with every kind of caller. Two workspaces, each with a file; nobody reaches the other's.
import { beforeAll, describe, expect, test } from "vitest";
import type { NewToken } from "holdfast";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { chatUploads } from "../src/index.ts";
import { ADMIN, idIn, openScene, type Scene, toForm } from "./scene.ts";

interface Place {
  workspace: string;
  file: string;
}

/** Each route, with what whoever may call it gets. */
const ROUTES: Record<
  string,
  { method: string; path: (at: Place) => string; body?: (at: Place) => unknown; ok: number }
> = {
  upload: {
    method: "POST",
    path: ({ workspace }) => `/workspaces/${workspace}/chat/uploads`,
    body: () => toForm([{ name: "a", content: "a" }]),
    ok: 200,
  },
  content: {
    method: "GET",
    path: ({ workspace, file }) => `/workspaces/${workspace}/pending-uploads/${file}/content`,
    ok: 200,
  },
  ack: {
    method: "POST",
    path: ({ workspace, file }) => `/workspaces/${workspace}/pending-uploads/${file}/ack`,
    ok: 200,
  },
  inbox: { method: "GET", path: ({ workspace }) => `/workspaces/${workspace}/inbox`, ok: 200 },
  chat: { method: "GET", path: ({ workspace }) => `/workspaces/${workspace}/chat`, ok: 200 },
  message: {
    method: "POST",
    path: ({ workspace }) => `/workspaces/${workspace}/chat/messages`,
    body: () => ({ text: "hello" }),
    ok: 201,
  },
};
const FOR_PEOPLE: typeof ROUTES = {
  list: { method: "GET", path: () => "/workspaces", ok: 200 },
  add: { method: "POST", path: () => "/workspaces", body: () => ({ name: "n", delivery_mode: "poll" }), ok: 201 },
  sample: {
    method: "POST",
    path: ({ workspace }) => `/workspaces/${workspace}/sample`,
    body: () => ({ mood: "running" }),
    ok: 409,
  },
};

describe("the matrix", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  let mine: Place & { token: string };
  let other: Place & { token: string };
  const tokens: Record<string, string | null> = {};
  beforeAll(async () => {
    scene = await openScene(bench.hf);
    const make = async (): Promise<Place & { token: string }> => {
      const { id, token } = await scene.register();
      const { json } = await scene.upload(id, [{ name: "secret.txt", content: `of ${id}` }]);
      return { workspace: id, token, file: idIn(json.files[0].uri) };
    };
    [mine, other] = [await make(), await make()];
    const revoked = await bench.hf.tokens.create({ name: "old", role: "operator", recipient: mine.workspace });
    await bench.hf.tokens.revoke(revoked.id);
    const made = async (options: Partial<NewToken>): Promise<string> =>
      (await bench.hf.tokens.create({ name: "t", ...options })).token;
    Object.assign(tokens, {
      nobody: null,
      "a made-up token": `hf_${"0".repeat(32)}_${"x".repeat(43)}`,
      "a revoked token": revoked.token,
      "the other workspace": other.token,
      "a viewer": await made({ role: "viewer" }),
      "an owner": await made({ role: "operator", owner: mine.workspace }),
      "the workspace": mine.token,
      "an operator": await made({ role: "operator" }),
      "an admin": ADMIN,
    });
  });

  const ask = (route: (typeof ROUTES)[string], at: Place, token: string | null) =>
    scene.call(route.method, route.path(at), { token, ...(route.body && { body: route.body(at) }) });
  const STRANGERS = ["nobody", "a made-up token", "a revoked token", "the other workspace", "a viewer", "an owner"];

  test("the routes under a workspace open for itself and for people, and for nobody else", async () => {
    for (const [name, route] of Object.entries(ROUTES)) {
      for (const who of STRANGERS) {
        const { status, json } = await ask(route, mine, tokens[who]!);
        expect(status, `${name}, ${who}`).toBe(401);
        expect(JSON.stringify(json), `${name}, ${who}`).not.toContain("secret");
      }
      for (const who of ["the workspace", "an operator", "an admin"]) {
        expect((await ask(route, mine, tokens[who]!)).status, `${name}, ${who}`).toBe(route.ok);
      }
    }
  });

  test("what is for people is not for workspaces, not even for the one it is about", async () => {
    for (const [name, route] of Object.entries(FOR_PEOPLE)) {
      for (const who of [...STRANGERS, "the workspace"]) {
        expect((await ask(route, mine, tokens[who]!)).status, `${name}, ${who}`).toBe(401);
      }
      for (const who of ["an operator", "an admin"]) {
        expect((await ask(route, mine, tokens[who]!)).status, `${name}, ${who}`).toBe(route.ok);
      }
    }
  });

  test("another workspace's file is as unknown as one that never was, for everybody; and it is left alone", async () => {
    const crossed = { workspace: mine.workspace, file: other.file };
    const never = { workspace: mine.workspace, file: "00000000-0000-4000-8000-000000000000" };
    for (const who of ["the workspace", "an operator", "an admin"]) {
      for (const name of ["content", "ack"]) {
        const [foreign, unknown] = [
          await ask(ROUTES[name]!, crossed, tokens[who]!),
          await ask(ROUTES[name]!, never, tokens[who]!),
        ];
        expect([foreign.status, foreign.json], `${name}, ${who}`).toEqual([404, unknown.json]);
      }
    }
    expect(await bench.hf.inbox(other.workspace).get(other.file)).toMatchObject({ state: "waiting", fetchCount: 0 });
    // Its own token through its own path, and the file is there.
    expect((await ask(ROUTES["content"]!, other, other.token)).bytes.toString()).toBe(`of ${other.workspace}`);
  });

  test("ids that are none are 400, for whoever has a token at all", async () => {
    for (const who of ["the workspace", "an admin"]) {
      for (const name of ["content", "ack"]) {
        const route = ROUTES[name]!;
        expect((await ask(route, { workspace: "x", file: mine.file }, tokens[who]!)).status).toBe(400);
        expect((await ask(route, { workspace: mine.workspace, file: "x" }, tokens[who]!)).status).toBe(400);
      }
    }
    expect((await ask(ROUTES["content"]!, { workspace: "x", file: "x" }, null)).status).toBe(401);
  });

  test("a workspace's token opens nothing else: not the inbox of another through Holdfast's API, not its jobs", async () => {
    for (const path of [
      `/api/v1/inbox/${other.workspace}/parcels`,
      "/api/v1/jobs",
      "/api/v1/tokens",
      "/api/v1/inbox",
    ]) {
      expect((await scene.call("GET", path, { token: mine.token })).status, path).toBe(403);
    }
  });

  test("this matrix has every route that there is", () => {
    const known = [...Object.values(ROUTES), ...Object.values(FOR_PEOPLE)].map(
      ({ method, path }) => `${method} ${path({ workspace: ":id", file: ":file_id" })}`,
    );
    const real = chatUploads().routes!.map(({ method, path }) => `${method} ${path}`);
    expect([...known, "GET /uploads/limits"].toSorted()).toEqual(real.toSorted());
  });

  test("a callback's token and a workspace's secrets are in no answer", async () => {
    const callback = {
      delivery_mode: "push",
      callback_url: "https://x.example/hook?key=s3cret",
      callback_token: "s3cret",
    };
    const { id } = await scene.register(callback);
    for (const path of ["/workspaces", `/workspaces/${id}/chat`]) {
      expect((await scene.call("GET", path)).bytes.toString()).not.toContain("s3cret");
    }
  });
});
