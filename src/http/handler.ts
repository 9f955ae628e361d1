// makeHandler(options): the whole HTTP side as one function from Request to Response, to mount anywhere.
//
// It answers every request, with JSON, and with headers that keep browsers from doing more with it than asked. Without
// a token it answers only for the names of this machine.
import { type Context, Hono } from "hono";
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { type AuthOptions, isLoopback, makeGuards } from "./auth.ts";
import { readJson } from "./body.ts";
import { type Contract, CONTRACTS, type Contracts, type Incoming } from "./contracts.ts";
import { Refusal, toErrorAnswer } from "./errors.ts";
import { makeHealthRoutes } from "./routes/health.ts";
import { makeJobRoutes } from "./routes/jobs.ts";
import type { Answer, Route } from "./routes/route.ts";

export interface HandlerOptions extends AuthOptions {
  hf: Holdfast;
  /** The kinds that may be enqueued over HTTP. */
  kinds: readonly AnyJobKind[];
  /** True while the process is stopping: /readyz then says so. */
  isStopping?: () => boolean;
  /** Told of what was answered with 500; `incident` is the number the caller got. */
  onError?: (error: unknown, incident: string) => void;
}

export type Handler = (request: Request) => Promise<Response>;

const KNOWN = ["hf", "kinds", "token", "allowedHosts", "allowAddresses", "isStopping", "onError"];

const HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

export function makeHandler(options: HandlerOptions): Handler {
  refuseUnknown("makeHandler()", options, KNOWN);
  refuseOpenDoor(options);
  const { hf, kinds, isStopping = () => false, onError = () => {} } = options;
  const guards = makeGuards(options);
  const routes: Record<keyof Contracts, Route> = { ...makeJobRoutes(hf, kinds), ...makeHealthRoutes(hf, isStopping) };
  const app = new Hono();

  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
  });
  app.use(async (context, next) => {
    guards.checkHost(context.req.raw);
    guards.checkOrigin(context.req.raw);
    if (!isPublic(context.req.path)) guards.checkToken(context.req.raw);
    await next();
  });
  for (const { contract, answer } of Object.values(routes)) {
    app.on(contract.method, contract.path, async (context) => {
      try {
        return toResponse(await answer(incoming(context)));
      } catch (error) {
        return toResponse(toErrorAnswer({ error, invalidStatus: contract.invalidStatus, onError }));
      }
    });
  }
  for (const [path, methods] of methodsByPath()) {
    app.all(path, (context) => {
      throw new Refusal(
        "HOLDFAST_HTTP_METHOD_NOT_ALLOWED",
        `${context.req.method} is not something ${path} does.`,
        `Use ${methods.join(" or ")}.`,
        { allow: methods.join(", ") },
      );
    });
  }
  app.notFound((context) => {
    const refusal = new Refusal(
      "HOLDFAST_HTTP_ROUTE_UNKNOWN",
      `There is nothing at ${context.req.path.slice(0, 200)}.`,
      "The API is under /api/v1, for example /api/v1/jobs.",
    );
    return toResponse(toErrorAnswer({ error: refusal, invalidStatus: 400, onError }));
  });
  app.onError((error) => toResponse(toErrorAnswer({ error, invalidStatus: 400, onError })));

  return async (request) => app.fetch(request);
}

function toResponse({ status = 200, body, headers = {} }: Answer<unknown>): Response {
  return Response.json(body, { status, headers });
}

function incoming(context: Context): Incoming {
  return {
    param: (name) => context.req.param(name) ?? "",
    query: new URL(context.req.url).searchParams,
    json: () => readJson(context.req.raw),
  };
}

/** Everything is behind the token but what a contract calls public; nothing is told about unknown paths either. */
function isPublic(path: string): boolean {
  return Object.values<Contract<unknown, unknown>>(CONTRACTS).some(
    (contract) => contract.access === "public" && contract.path === path,
  );
}

function methodsByPath(): Map<string, string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of Object.values<Contract<unknown, unknown>>(CONTRACTS)) {
    methods.set(path, [...(methods.get(path) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])]);
  }
  return methods;
}

function refuseOpenDoor({ token, allowedHosts = [], allowAddresses = false }: AuthOptions): void {
  if (token !== undefined) return;
  const beyond = allowAddresses ? "any address" : allowedHosts.find((host) => !isLoopback(host));
  if (beyond === undefined) return;
  throw new OptionInvalid(
    `makeHandler() is to answer for ${beyond}, but has no token: whoever reaches it could run and cancel jobs.`,
    "Give it a token.",
  );
}
