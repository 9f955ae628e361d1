// defineApp(options): a product on top of Holdfast, as one module: its tables, kinds, chores, routes, commands and page.
// Checked once, here, so that a wrong one is an error at start that names the app, the place and the fix.
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import type { Chore } from "../job/define-chore.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { AppMigration } from "../migrate/app-migrations.ts";
import type { Logger } from "../options.ts";
import type { Caller } from "../shared/caller.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { isRole, type Role, ROLES } from "../shared/roles.ts";

const APP_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** What an app's route is given of a request. */
export interface AppRequest {
  request: Request;
  /** The values in the path: `/telegram/:bot`. */
  params: Record<string, string>;
  query: URLSearchParams;
  hf: Holdfast;
  /** null where the route is public, or has its own `auth` that did not ask. */
  caller: Caller | null;
  /** The body as JSON; answers 4xx by itself if it is none, too large or too slow. */
  json(): Promise<unknown>;
  /** The body piece by piece; the same. */
  bytes(): AsyncIterable<Uint8Array>;
  /** The parts of a form (multipart/form-data), one after the other; the same. */
  form(): AsyncIterable<FormPart>;
}

/** Its content is read before the next part comes; what nobody reads is passed over. */
export interface FormPart {
  /** The name of the form's field. */
  field: string;
  /** undefined: a plain field, not a file. */
  filename: string | undefined;
  type: string;
  content: AsyncIterable<Uint8Array>;
}

/** What a function that decides may look at: not the body, which is not read for strangers. */
export type AppAuth = (request: Request, context: AppAuthContext) => unknown;

/** What a route's own `auth` function is given to decide by. */
export interface AppAuthContext {
  params: Record<string, string>;
  hf: Holdfast;
  /** Whose token it shows, as `auth: "token"` asks; 401 if it shows none that counts. The route's `caller` then. */
  identify(): Promise<Caller>;
}

/** A route of an app, and who may call it. */
export interface AppRoute {
  method: (typeof APP_METHODS)[number];
  /** From the root: "/telegram/:bot". */
  path: `/${string}`;
  /** Who may call: everybody; who has a token; or whom the function says true about. It must be said. */
  auth: "public" | "token" | AppAuth;
  /** With `auth: "token"`: the least role. viewer for GET, operator for the others. */
  role?: Role;
  /** With `auth: "token"`: a token bound to a recipient (the `:recipient` of the path) or an owner gets in too. */
  scope?: "recipient" | "owner";
  /** The largest body, in bytes. 1 MiB if not given. */
  maxBody?: number;
  /** A Response, or any value as JSON. */
  handle(request: AppRequest): unknown;
}

/** What an app's command is given. */
export interface AppCommandContext {
  /** Opens the database, once; it is closed when the command ends. Not for a folder that a running server holds. */
  open(): Promise<Holdfast>;
  /** The server that commands talk to: HOLDFAST_URL and HOLDFAST_TOKEN, or the one that `holdfast dev` runs here. */
  server: { url: string; token: string | undefined };
  args: string[];
  options: Record<string, unknown>;
  /** Data, to stdout. */
  print(text: string): void;
  /** A remark, to stderr. */
  note(text: string): void;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
}

/** A command of an app: `holdfast <name>`. */
export interface AppCommand {
  /** One or two words: "telegram set-webhook". */
  name: string;
  summary: string;
  /** ["<url>", "[bot]", "[files...]"] */
  arguments?: readonly string[];
  /** [["--bot <name>", "which bot"]] */
  options?: readonly (readonly [flags: string, description: string])[];
  /** A number is the exit code. */
  run(context: AppCommandContext): unknown;
}

/** What an app shows in a browser, at `/apps/<name>/`. */
export type AppPage =
  | {
      title: string;
      /** A folder with index.html, served as it is. It holds no secrets: whoever reaches the server can read it. */
      folder: URL | string;
    }
  | {
      title: string;
      /** HTML, or a Response. The same: no secrets. */
      render(request: AppRequest): unknown;
    };

/** What an app's `start` is given when a process has begun to serve. */
export interface AppStart {
  hf: Holdfast;
  /** What runs it: `holdfast dev`, `start`, `worker`, or a program of yours. */
  mode: "dev" | "start" | "worker" | "program";
  /** Where this process answers to HTTP, as it can be called from this machine; undefined if it does not. */
  url: string | undefined;
  log: Logger;
}

/** What an app may have: tables, kinds, chores, routes, commands, a page, and something to start. */
export interface AppOptions {
  name: string;
  /** Its own tables, oldest first. */
  migrations?: readonly AppMigration[];
  /** A function if handlers need `hf`. */
  jobs?: readonly AnyJobKind[] | ((hf: Holdfast) => readonly AnyJobKind[]);
  chores?: readonly Chore[] | ((hf: Holdfast) => readonly Chore[]);
  routes?: readonly AppRoute[];
  commands?: readonly AppCommand[];
  page?: AppPage;
  /** Once, when a process that runs the app is ready. What it returns is called when the process stops. */
  start?(context: AppStart): unknown;
}

/** What `defineApp` gives: name a configuration's apps with it. */
export type App = Readonly<AppOptions>;

const KNOWN = ["name", "migrations", "jobs", "chores", "routes", "commands", "page", "start"];
const NAME_FORM = /^[a-z][a-z0-9-]{0,39}$/;
const PATH_FORM = /^(\/(:[A-Za-z]\w*|[\w.~-]+))+$/;
/** Holdfast's own. */
const RESERVED = /^\/(api|apps|assets|metrics|livez|readyz|healthz)(\/|$)/;
const MIGRATION_FORM = /^[\w.-]{1,100}$/;

/** A product on top of Holdfast as one module. What is wrong in it is refused here, with the field and the value. */
export function defineApp(options: AppOptions): App {
  if (options === null || typeof options !== "object") {
    throw new OptionInvalid("defineApp() got no options.", 'Give at least { name: "my-app" }.');
  }
  const { name } = options;
  if (typeof name !== "string" || !NAME_FORM.test(name)) {
    throw new OptionInvalid(
      `defineApp().name is ${shown(name)}.`,
      "Use 1 to 40 lower-case letters, digits and -, and start with a letter.",
    );
  }
  const where = `defineApp("${name}")`;
  refuseUnknown(where, options, KNOWN);
  checkMigrations(where, options.migrations ?? []);
  checkListOrFunction(`${where}.jobs`, options.jobs);
  checkListOrFunction(`${where}.chores`, options.chores);
  for (const [index, route] of list(`${where}.routes`, options.routes).entries()) {
    checkRoute(`${where}.routes[${index}]`, route);
  }
  for (const [index, command] of list(`${where}.commands`, options.commands).entries()) {
    checkCommand(`${where}.commands[${index}]`, command);
  }
  if (options.page !== undefined) checkPage(`${where}.page`, options.page);
  checkFunction(`${where}.start`, options.start, true);
  return Object.freeze({ ...options });
}

function checkMigrations(where: string, migrations: readonly AppMigration[]): void {
  const names = new Set<string>();
  for (const [index, migration] of list(`${where}.migrations`, migrations).entries()) {
    const at = `${where}.migrations[${index}]`;
    refuseUnknown(at, migration, ["name", "sql"]);
    if (typeof migration.name !== "string" || !MIGRATION_FORM.test(migration.name)) {
      throw new OptionInvalid(`${at}.name is ${shown(migration.name)}.`, 'Use letters, digits, _ . and -: "001_bots".');
    }
    if (typeof migration.sql !== "string" || migration.sql.trim() === "") {
      throw new OptionInvalid(`${at}.sql is ${shown(migration.sql)}.`, "Give the SQL as text.");
    }
    if (names.has(migration.name)) {
      throw new OptionInvalid(`${where} has two migrations named ${migration.name}.`, "Give each a name of its own.");
    }
    names.add(migration.name);
  }
}

function checkRoute(where: string, route: AppRoute): void {
  refuseUnknown(where, route, ["method", "path", "auth", "role", "scope", "maxBody", "handle"]);
  const { method, path, auth, role, scope, maxBody } = route;
  if (!APP_METHODS.includes(method)) {
    throw new OptionInvalid(`${where}.method is ${shown(method)}.`, `Give one of ${APP_METHODS.join(", ")}.`);
  }
  if (typeof path !== "string" || !PATH_FORM.test(path)) {
    throw new OptionInvalid(`${where}.path is ${shown(path)}.`, 'Write it from the root: "/telegram/:bot".');
  }
  if (RESERVED.test(path)) {
    throw new OptionInvalid(`${where}.path is ${shown(path)}, which is Holdfast's own.`, "Choose another first part.");
  }
  if (auth !== "public" && auth !== "token" && typeof auth !== "function") {
    throw new OptionInvalid(
      `${where}.auth is ${shown(auth)}.`,
      'Say who may call it: "public", "token", or a function (request) => boolean.',
    );
  }
  if (role !== undefined && !isRole(role)) {
    throw new OptionInvalid(`${where}.role is ${shown(role)}.`, `Give one of ${ROLES.join(", ")}.`);
  }
  if (scope !== undefined && scope !== "recipient" && scope !== "owner") {
    throw new OptionInvalid(`${where}.scope is ${shown(scope)}.`, 'Give "recipient" or "owner", or leave it out.');
  }
  if (auth !== "token" && (role ?? scope) !== undefined) {
    throw new OptionInvalid(`${where} has a role or a scope, but no token is asked for.`, 'Set auth: "token".');
  }
  if (scope === "recipient" && !/:recipient(\/|$)/.test(path)) {
    throw new OptionInvalid(`${where}.scope is "recipient", but its path has no :recipient.`, "Name it in the path.");
  }
  if (maxBody !== undefined && (!Number.isInteger(maxBody) || maxBody < 0)) {
    throw new OptionInvalid(`${where}.maxBody is ${shown(maxBody)}.`, "Give a number of bytes: 10 * 1024 * 1024.");
  }
  checkFunction(`${where}.handle`, route.handle, false);
}

function checkCommand(where: string, command: AppCommand): void {
  refuseUnknown(where, command, ["name", "summary", "arguments", "options", "run"]);
  if (typeof command.name !== "string" || !/^[a-z][a-z-]*( [a-z][a-z-]*)?$/.test(command.name)) {
    throw new OptionInvalid(
      `${where}.name is ${shown(command.name)}.`,
      'Give one or two words: "telegram set-webhook".',
    );
  }
  if (typeof command.summary !== "string") {
    throw new OptionInvalid(`${where}.summary is ${shown(command.summary)}.`, "Say in a few words what it does.");
  }
  checkFunction(`${where}.run`, command.run, false);
}

function checkPage(where: string, page: AppPage): void {
  refuseUnknown(where, page, ["title", "folder", "render"]);
  if (typeof page.title !== "string" || page.title === "") {
    throw new OptionInvalid(`${where}.title is ${shown(page.title)}.`, "Give the text that links to it.");
  }
  if ("render" in page === "folder" in page) {
    throw new OptionInvalid(`${where} has ${"render" in page ? "both" : "neither"}.`, "Give it a folder or render().");
  }
  if ("render" in page) checkFunction(`${where}.render`, page.render, false);
  else if (!(page.folder instanceof URL) && typeof page.folder !== "string") {
    throw new OptionInvalid(`${where}.folder is ${shown(page.folder)}.`, 'Write new URL("./page/", import.meta.url).');
  }
}

function list<T>(where: string, value: readonly T[] | undefined): readonly T[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new OptionInvalid(`${where} is ${shown(value)}.`, "Give a list: [ … ].");
  const wrong = value.findIndex((entry) => entry === null || typeof entry !== "object");
  if (wrong < 0) return value;
  throw new OptionInvalid(`${where}[${wrong}] is ${shown(value[wrong])}.`, "Each entry is an object: { … }.");
}

function checkListOrFunction(where: string, value: unknown): void {
  if (value === undefined || typeof value === "function" || Array.isArray(value)) return;
  throw new OptionInvalid(`${where} is ${shown(value)}.`, "Give a list, or a function (hf) => list.");
}

function checkFunction(where: string, value: unknown, isOptional: boolean): void {
  if (typeof value === "function" || (isOptional && value === undefined)) return;
  throw new OptionInvalid(`${where} is ${shown(value)}.`, "Give a function.");
}

function shown(value: unknown): string {
  if (value === undefined) return "missing";
  try {
    return (JSON.stringify(value) ?? typeof value).slice(0, 100);
  } catch {
    return "something that cannot be shown";
  }
}
