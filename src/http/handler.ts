// makeHandler(options): the whole HTTP side as one function from Request to Response, to mount anywhere.
//
// It answers every request, with JSON unless a contract says otherwise, and with headers that keep browsers from doing
// more with it than asked. The order is always the same: host, origin, who is asking, may they, what do they ask.
import { type Context, Hono } from "hono";
import type { z } from "zod";
import type { App } from "../apps/define-app.ts";
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { Caller } from "../shared/caller.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { version } from "../shared/version.ts";
import { addAppRoutes } from "./app-routes.ts";
import { type Auditing, makeAuditing } from "./auditing.ts";
import { readJson } from "./body.ts";
import { type HostOptions, isLoopback, makeGuards } from "./browsers.ts";
import { makeChangeStreams } from "./change-streams.ts";
import { admit, type Authorize, type Identify, makeIdentify, NOBODY } from "./callers.ts";
import { type AnyContract, hasJson, type InputOf, isBytes } from "./contract.ts";
import type { Contracts } from "./contracts.ts";
import type { SettingView } from "./contracts/system.ts";
import { addDashboard, addJobProgress, addPageFiles } from "./dashboard.ts";
import { Refusal, toErrorAnswer } from "./errors.ts";
import { makeEventHub } from "./event-hub.ts";
import { isLines } from "./lines.ts";
import { readBody, readParams, readQuery } from "./read-input.ts";
import { makeActionRoutes } from "./routes/actions.ts";
import { makeAppListRoutes } from "./routes/apps.ts";
import { makeAuditRoutes } from "./routes/audit.ts";
import { makeBatchChangeRoutes } from "./routes/batch-changes.ts";
import { makeBatchRoutes } from "./routes/batches.ts";
import { makeDoctorRoutes } from "./routes/doctor.ts";
import { makeDocumentRoutes } from "./routes/document.ts";
import { makeErrorRoutes } from "./routes/errors.ts";
import { makeEventRoutes } from "./routes/events.ts";
import { makeHealthRoutes } from "./routes/health.ts";
import { makeJanitorRoutes } from "./routes/janitor.ts";
import { makeInboxRoutes } from "./routes/inbox.ts";
import { makeJobRoutes } from "./routes/jobs.ts";
import { makeQueueRoutes } from "./routes/queues.ts";
import type { Answer, Route } from "./routes/route.ts";
import { makeSystemRoutes } from "./routes/system.ts";
import { makeTokenRoutes } from "./routes/tokens.ts";
import { makeViewRoutes } from "./routes/views.ts";
import { makeWorkerRoutes } from "./routes/workers.ts";
import { makeViewStreams } from "./view-streams.ts";

/** What `makeHandler` takes. */
export interface HandlerOptions extends HostOptions {
  hf: Holdfast;
  /** The kinds that may be enqueued over HTTP. */
  kinds: readonly AnyJobKind[];
  /** Their routes and pages are served too; their kinds are in `kinds` (prepareApps() returns them). */
  apps?: readonly App[] | undefined;
  /** An admin's token, besides those that hf.tokens made. */
  token?: string | undefined;
  /** Your own way to know who is asking. Where it gives null, the tokens are asked. */
  authorize?: Authorize | undefined;
  /** Let in, as an admin, who comes without a token. Embedded tier only; the default there, if there is no token. */
  anonymous?: boolean | undefined;
  /** What people call this installation ("production"): shown on every page of the dashboard. */
  environment?: string | undefined;
  /** What the server runs with and where each value comes from, for the system page. Secrets must be masked. */
  settings?: readonly SettingView[] | undefined;
  /** Only /livez, /readyz, /healthz and /metrics: for a worker that is looked at by an orchestrator. */
  healthOnly?: boolean | undefined;
  /** False: no dashboard at `/`. */
  dashboard?: boolean | undefined;
  /** True while the process is stopping: /readyz then says so. */
  isStopping?: () => boolean;
  /** Told of what was answered with 500; `incident` is the number the caller got. */
  onError?: (error: unknown, incident: string) => void;
}

/** What `makeHandler` gives. */
export interface Handler {
  (request: Request): Promise<Response>;
  /** Ends the event streams that are open: for a server that stops. */
  endStreams(): void;
}

const KNOWN = [
  "hf",
  "kinds",
  "apps",
  "token",
  "authorize",
  "anonymous",
  "allowedHosts",
  "allowAddresses",
  "environment",
  "settings",
  "healthOnly",
  "dashboard",
  "isStopping",
  "onError",
];

const HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** A view is all that is needed to see it, and end users look from the pages of apps: no cookie or token goes with it. */
const FOR_EVERY_PAGE = /^\/(api\/v1\/views\/[^/]+(\/events)?|job-progress\.js)$/;
const OPEN_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
};

/** The HTTP API and the dashboard as one function from Request to Response, to be mounted anywhere. */
export function makeHandler(options: HandlerOptions): Handler {
  refuseUnknown("makeHandler()", options, KNOWN);
  const { hf, kinds, apps = [], isStopping = () => false, onError = () => {} } = options;
  const guards = makeGuards(options);
  const identify = makeIdentify({
    tokens: hf.tokens,
    token: options.token,
    authorize: options.authorize,
    anonymous: isAnonymous(options),
  });
  const hub = makeEventHub(hf);
  const streams = makeChangeStreams(hf);
  const viewStreams = makeViewStreams(hf);
  const health = makeHealthRoutes(hf, isStopping);
  const all: Record<keyof Contracts, Route> = {
    ...makeJobRoutes(hf, kinds),
    ...makeBatchChangeRoutes(hf, kinds, streams),
    ...makeBatchRoutes(hf, kinds),
    ...makeActionRoutes(hf, kinds),
    ...makeErrorRoutes(hf),
    ...makeSystemRoutes({ hf, kinds, environment: options.environment, settings: options.settings }),
    ...makeInboxRoutes(hf),
    ...makeQueueRoutes(hf),
    ...makeWorkerRoutes(hf),
    ...makeJanitorRoutes(hf),
    ...makeDoctorRoutes(hf, kinds),
    ...makeAppListRoutes(apps),
    ...makeEventRoutes(hub),
    ...makeTokenRoutes(hf),
    ...makeViewRoutes(hf, viewStreams),
    ...makeAuditRoutes(hf),
    ...makeDocumentRoutes(version()),
    ...health,
  };
  const routes = options.healthOnly ? health : all;
  const app = new Hono();
  app.use(async (context, next) => {
    await next();
    const forAll = FOR_EVERY_PAGE.test(context.req.path) ? OPEN_HEADERS : {};
    for (const [name, value] of Object.entries({ ...HEADERS, ...forAll })) {
      if (!context.res.headers.has(name)) context.header(name, value);
    }
  });
  app.use(async (context, next) => {
    guards.checkHost(context.req.raw);
    guards.checkOrigin(context.req.raw);
    await next();
  });
  const doors: Doors = { identify, onError, audit: makeAuditing(hf.audit, onError) };
  for (const [name, route] of Object.entries(routes)) {
    app.on(route.contract.method, route.contract.path, (context) => answer(name, route, context, doors));
  }
  for (const [path, contracts] of byPath(Object.values(routes))) {
    app.all(path, async (context) => {
      if (contracts.every(({ access }) => access !== "public")) await identify(context.req.raw);
      const methods = contracts.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
      throw new Refusal(
        "HOLDFAST_HTTP_METHOD_NOT_ALLOWED",
        `${context.req.method} is not something ${path} does.`,
        `Use ${methods.join(" or ")}.`,
        { allow: methods.join(", ") },
      );
    });
  }
  if (!options.healthOnly) {
    addAppRoutes({ app, apps, hf, identify, onError });
    addJobProgress(app);
    addPageFiles(app);
    if (options.dashboard ?? true) addDashboard(app);
  }
  app.all("*", async (context) => {
    // Nothing is told about unknown paths either.
    await identify(context.req.raw);
    throw new Refusal(
      "HOLDFAST_HTTP_ROUTE_UNKNOWN",
      `There is nothing at ${context.req.path.slice(0, 200)}.`,
      "The API is under /api/v1; /api/v1/openapi.json describes it.",
    );
  });
  app.onError((error) => toResponse(toErrorAnswer({ error, invalidStatus: 400, onError })));

  return Object.assign(async (request: Request) => await app.fetch(request), {
    endStreams() {
      hub.end();
      streams.end();
      viewStreams.end();
    },
  });
}

interface Doors {
  identify: Identify;
  audit: Auditing;
  onError: (error: unknown, incident: string) => void;
}

async function answer(
  name: string,
  { contract, answer: run }: Route,
  context: Context,
  doors: Doors,
): Promise<Response> {
  const { identify, onError } = doors;
  const request = context.req.raw;
  const params = context.req.param();
  let caller: Caller = NOBODY;
  // What a wrong value is answered with: 400 while it stands in the URL, 422 from when the body is read.
  let invalidStatus: 400 | 422 = 400;
  let answered: Answer<unknown> | Response;
  try {
    if (contract.access !== "public") caller = await identify(request);
    admit(caller, contract, params);
    const input: InputOf<AnyContract> = {
      params: readParams(contract.params, params),
      query: readQuery(contract.query, new URL(request.url).searchParams),
      body: null,
    };
    const schema = jsonSchemaOf(contract, request);
    if (schema) {
      invalidStatus = 422;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the contract's schema gave
      input.body = readBody(schema, await readJson(request)) as null;
    }
    answered = await run(input, { caller, request });
  } catch (error) {
    answered = toErrorAnswer({ error, invalidStatus, onError });
  }
  if (contract.audited) await doors.audit({ caller, action: name, request, answered });
  return answered instanceof Response ? answered : toResponse(answered);
}

/** What the body is checked with; undefined if there is none, or the route reads it itself. */
function jsonSchemaOf({ body }: AnyContract, request: Request): z.ZodType | undefined {
  if (body === null) return undefined;
  if (!isBytes(body)) return body;
  return hasJson(body) && !isLines(request) ? body.json : undefined;
}

function toResponse({ status = 200, body, headers = {} }: Answer<unknown>): Response {
  return Response.json(body, { status, headers });
}

function byPath(routes: readonly Route[]): Map<string, AnyContract[]> {
  const paths = new Map<string, AnyContract[]>();
  for (const { contract } of routes) paths.set(contract.path, [...(paths.get(contract.path) ?? []), contract]);
  return paths;
}

function isAnonymous(options: HandlerOptions): boolean {
  const { hf, token, authorize, anonymous, allowedHosts = [], allowAddresses, healthOnly } = options;
  // Health checks are public anyhow; the figures are for those who have a token.
  if (healthOnly) return false;
  const isIt = anonymous ?? (hf.tier === "embedded" && token === undefined && authorize === undefined);
  if (!isIt) return false;
  if (hf.tier !== "embedded") {
    throw new OptionInvalid("makeHandler() is to be anonymous on a database server.", "Give its callers tokens.");
  }
  const beyond = allowAddresses ? "any address" : allowedHosts.find((host) => !isLoopback(host));
  if (beyond === undefined) return true;
  throw new OptionInvalid(
    `makeHandler() is to answer for ${beyond}, but has no token: whoever reaches it could run and cancel jobs.`,
    "Give it a token, or anonymous: false if there are tokens in its database.",
  );
}
