// Apps on the server: their routes from the root, their pages under /apps/<name>/. They pass the same doors as the API:
// host and origin before this, then what each route says about who may call it, before its body is touched.
import type { Context, Hono } from "hono";
import type { App, AppPage, AppRequest, AppRoute } from "../apps/define-app.ts";
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import type { Caller } from "../shared/caller.ts";
import { readJson, streamBody } from "./body.ts";
import { admit, type Identify } from "./callers.ts";
import { Refusal, toErrorAnswer } from "./errors.ts";
import { boundaryOf, readParts } from "./multipart.ts";
import { fileAnswer, PAGE_POLICY } from "./static-files.ts";

export interface AppRoutesInput {
  app: Hono;
  apps: readonly App[];
  hf: Holdfast;
  identify: Identify;
  onError: (error: unknown, incident: string) => void;
}

const MAX_BODY = 1_048_576;

export function addAppRoutes({ app, apps, hf, identify, onError }: AppRoutesInput): void {
  refuseDoubles(apps);
  const answering = (run: (context: Context) => Promise<Response>) => async (context: Context) => {
    try {
      return await run(context);
    } catch (error) {
      const { status, body, headers } = toErrorAnswer({ error, invalidStatus: 422, onError });
      return Response.json(body, { status, headers });
    }
  };
  for (const { name, routes = [], page } of apps) {
    for (const route of routes) {
      const answer = answering(async (context) => {
        refuseUnreadable(context);
        const caller = await admitTo(route, context, hf, identify);
        return toAnswer(await route.handle(appRequest(context, hf, caller, route.maxBody ?? MAX_BODY)));
      });
      app.on(route.method, route.path, answer);
    }
    if (!page) continue;
    // Relative addresses in the page need the slash.
    app.get(`/apps/${name}`, (context) => context.redirect(`/apps/${name}/`, 308));
    app.get(
      `/apps/${name}/*`,
      answering((context) => pageAnswer(name, page, context, hf)),
    );
  }
}

async function admitTo(route: AppRoute, context: Context, hf: Holdfast, identify: Identify): Promise<Caller | null> {
  const { auth, method, role = method === "GET" ? "viewer" : "operator", scope = null } = route;
  const request = context.req.raw;
  const params = context.req.param();
  if (auth === "public") return null;
  if (auth === "token") {
    const caller = await identify(request);
    admit(caller, { access: role, scope }, params);
    return caller;
  }
  let caller: Caller | null = null;
  const asked = async (): Promise<Caller> => (caller ??= await identify(request));
  if ((await auth(request, { params, hf, identify: asked })) === true) return caller;
  throw new Refusal("HOLDFAST_HTTP_UNAUTHORIZED", "This may not be called like that.", "Ask whoever runs this server.");
}

/** An app looks for what stands in a path: PostgreSQL's texts cannot hold a NUL, and it would be a 500. */
function refuseUnreadable(context: Context): void {
  const path = decodePath(new URL(context.req.raw.url).pathname);
  if (path !== null && !path.includes("\0")) return;
  throw new Refusal(
    "HOLDFAST_HTTP_REQUEST_UNREADABLE",
    "The path holds a NUL character, or something that is not UTF-8 behind a %.",
    "Encode each part of it with encodeURIComponent().",
  );
}

async function pageAnswer(name: string, page: AppPage, context: Context, hf: Holdfast): Promise<Response> {
  const path = decodePath(context.req.path.slice(`/apps/${name}`.length));
  if ("folder" in page) {
    const found = path === null ? null : await fileAnswer(page.folder, path, context.req.method);
    if (found) return found;
    throw new Refusal(
      "HOLDFAST_HTTP_ROUTE_UNKNOWN",
      `There is nothing at ${context.req.path.slice(0, 200)}.`,
      `The page of ${name} is at /apps/${name}/.`,
    );
  }
  refuseUnreadable(context);
  const made: unknown = await page.render(appRequest(context, hf, null, 0));
  if (made instanceof Response) return made;
  const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": PAGE_POLICY };
  return new Response(String(made), { headers });
}

function decodePath(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

function appRequest(context: Context, hf: Holdfast, caller: Caller | null, maxBytes: number): AppRequest {
  const request = context.req.raw;
  return {
    request,
    params: context.req.param(),
    query: new URL(request.url).searchParams,
    hf,
    caller,
    json: () => readJson(request, maxBytes),
    bytes: () => streamBody(request, { maxBytes }),
    form() {
      const boundary = boundaryOf(request.headers.get("content-type"));
      if (boundary !== undefined) return readParts(streamBody(request, { maxBytes }), boundary);
      throw new Refusal("HOLDFAST_HTTP_REQUEST_UNREADABLE", "The body is not a form.", "Send multipart/form-data.");
    },
  };
}

function toAnswer(made: unknown): Response {
  if (made instanceof Response) return made;
  return made === undefined ? new Response(null, { status: 204 }) : Response.json(made);
}

/** Two routes that answer for the same requests: the second would never be asked. */
function refuseDoubles(apps: readonly App[]): void {
  const owners = new Map<string, string>();
  for (const { name, routes = [] } of apps) {
    for (const { method, path } of routes) {
      const asked = `${method} ${path.replace(/:\w+/g, ":")}`;
      const owner = owners.get(asked);
      if (owner !== undefined) {
        throw new OptionInvalid(
          `${method} ${path} belongs to the app "${owner}" and to the app "${name}".`,
          "Give one of them another path.",
        );
      }
      owners.set(asked, name);
    }
  }
}
