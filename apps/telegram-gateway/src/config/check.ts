// The configuration, checked once, at start. What is wrong is named: the bot, the option, the value, what to do.
// No message repeats a token or a secret.
import { durationMs, OptionInvalid, type Duration } from "holdfast";
import type { Bot, BotOptions, Gateway, GatewayOptions, HttpOptions, ScriptOptions, Texts } from "./bot.ts";
import { refuseMetadata } from "../handlers/http-address.ts";

export const DEFAULT_API_ROOT = "https://api.telegram.org";
export const LADDER: readonly Duration[] = ["30s", "2m", "10m", "1h"];
const ATTEMPTS = 5;
/** Telegram waits about a minute for an answer; a bot that is not async must be well within that. */
const SYNC_CAP_MS = 30_000;
const HTTP_CAP_MS = 30_000;
const SCRIPT_CAP_MS = 3_600_000;
/** What a timer of Node can wait for: it takes a longer time for none at all. */
const TIMER_CAP_MS = 596 * 3_600_000;

const TEXTS: Texts = {
  slow: "Working on it …",
  gaveUp: "Sorry, this could not be done. Somebody has been told.",
  failed: "Sorry, that did not work. Please try again.",
  signIn: "Please sign in first.",
  signedIn: "You are signed in.",
  wrongSecret: "That is not the secret.",
  tooManyTries: "Too many tries. Please wait a quarter of an hour.",
};

const GATEWAY_KEYS = [
  "bots",
  "allowedUsers",
  "authSecret",
  "sessionTtl",
  "apiRoot",
  "publicUrl",
  "keep",
  "texts",
] as const satisfies readonly (keyof GatewayOptions)[];
const BOT_KEYS = [
  "token",
  "secret",
  "handler",
  "http",
  "script",
  "async",
  "requireAuth",
  "slowAfter",
  "ladder",
  "attempts",
  "timeout",
] as const satisfies readonly (keyof BotOptions)[];
const HANDLERS = ["echo", "http", "script", "auth"];

export function checkGateway(where: string, options: unknown, isSample = false): Gateway {
  const given = record(where, options) as Partial<GatewayOptions>;
  refuseOthers(where, given, GATEWAY_KEYS);
  const bots = new Map<string, Bot>();
  for (const [slug, bot] of Object.entries(record(`${where} bots`, given.bots))) {
    bots.set(slug, checkBot(slug, bot));
  }
  if (bots.size === 0) throw new OptionInvalid(`${where} has no bots.`, "List at least one under bots.");
  const gateway: Gateway = {
    bots,
    allowedUsers: checkUsers(`${where} allowedUsers`, given.allowedUsers),
    authSecret: checkAuthSecret(given.authSecret),
    sessionTtlMs: positive("sessionTtl", given.sessionTtl ?? "24h"),
    apiRoot: checkRoot("apiRoot", given.apiRoot ?? DEFAULT_API_ROOT),
    publicUrl: given.publicUrl === undefined ? undefined : checkRoot("publicUrl", given.publicUrl),
    keepMs: given.keep === "forever" ? null : durationMs("keep", given.keep ?? "168h"),
    texts: checkTexts(given.texts ?? {}),
    isSample,
  };
  checkSignIn(gateway);
  return gateway;
}

function checkSignIn({ bots, authSecret }: Gateway): void {
  const all = [...bots.values()];
  const closed = all.find((bot) => bot.requiresAuth);
  const door = all.find((bot) => bot.handler === "auth");
  if (!closed && !door) return;
  const why = closed ? `The bot "${closed.slug}" requires a sign-in` : `The bot "${door!.slug}" takes sign-ins`;
  if (authSecret === undefined) {
    throw new OptionInvalid(`${why}, and there is no secret.`, "Set AUTH_SECRET, or requireAuth: false for the bot.");
  }
  if (closed && !door) {
    throw new OptionInvalid(`${why}, and no bot takes sign-ins.`, "Add a bot with handler: auth.");
  }
}

function checkBot(slug: string, options: unknown): Bot {
  const where = `The bot "${slug.slice(0, 40)}"`;
  if (!/^[a-z][a-z0-9-]{0,31}$/.test(slug)) {
    throw new OptionInvalid(`${where} has a name that cannot be used.`, "Use up to 32 lower-case letters, digits, -.");
  }
  const given = record(where, options) as Partial<BotOptions>;
  refuseOthers(where, given, BOT_KEYS);
  const { handler, async: isAsync = false, requireAuth } = given;
  if (typeof handler !== "function" && !HANDLERS.includes(handler as string)) {
    throw new OptionInvalid(
      `${where} has the handler ${shown(handler)}.`,
      `Give one of ${HANDLERS.join(", ")}; in TypeScript also a function.`,
    );
  }
  if (typeof isAsync !== "boolean")
    throw new OptionInvalid(`${where} has async: ${shown(isAsync)}.`, "Say true or false.");
  if (requireAuth !== undefined && typeof requireAuth !== "boolean") {
    throw new OptionInvalid(`${where} has requireAuth: ${shown(requireAuth)}.`, "Say true or false.");
  }
  if (handler === "auth" && (isAsync || requireAuth === true)) {
    throw new OptionInvalid(
      `${where} has the handler auth, and ${isAsync ? "async" : "requireAuth"}: true.`,
      "A sign-in is answered at once, for everybody, and its secret is never stored: leave that out.",
    );
  }
  const http = checkHttp(where, handler === "http", given.http);
  const script = checkScript(where, handler === "script", isAsync, given.script);
  if (given.timeout !== undefined && typeof handler === "string") refuseTimeout(where, handler);
  const timeoutMs =
    http?.timeoutMs ?? script?.timeoutMs ?? timerMs(`${where} timeout`, given.timeout ?? (isAsync ? "10m" : "30s"));
  if (!isAsync && timeoutMs > SYNC_CAP_MS) {
    throw new OptionInvalid(`${where} is not async and its handler may take longer than 30s.`, "Set async: true.");
  }
  return {
    slug,
    token: checkForm(where, "token", given.token, /^\d{3,20}:[\w-]{10,100}$/, "Copy it from @BotFather: 123456:ABC-…"),
    secret: checkForm(
      where,
      "secret",
      given.secret,
      /^[\w-]{16,256}$/,
      "Use 16 to 256 letters, digits, _ and -: openssl rand -hex 32 makes a good one.",
    ),
    handler: handler!,
    http,
    script,
    isAsync,
    requiresAuth: handler === "auth" ? false : (requireAuth ?? true),
    slowAfterMs: timerMs(`${where} slowAfter`, given.slowAfter ?? "10s"),
    ladder: checkLadder(where, given.ladder),
    attempts: checkCount(`${where} attempts`, given.attempts ?? ATTEMPTS, 1, 100),
    timeoutMs,
  };
}

/** It is the limit of a function; for the others it would say nothing. */
function refuseTimeout(where: string, handler: string): never {
  const hint = handler === "http" || handler === "script" ? `Write it as ${handler}.timeout.` : "Leave timeout out.";
  throw new OptionInvalid(`${where} has a timeout, and the handler ${handler}.`, hint);
}

function checkHttp(where: string, isUsed: boolean, given: HttpOptions | undefined): Bot["http"] {
  if (!isUsed) return unused(where, "http", given);
  const options = record(`${where} http`, given) as Partial<HttpOptions>;
  refuseOthers(`${where} http`, options, ["url", "timeout", "headers"]);
  const url = new URL(checkUrl(`${where} http.url`, options.url));
  refuseMetadata(`${where} http.url`, url);
  const timeoutMs = positive(`${where} http.timeout`, options.timeout ?? "5s");
  if (timeoutMs > HTTP_CAP_MS) {
    throw new OptionInvalid(`${where} http.timeout is ${shown(options.timeout)}.`, "At most 30s.");
  }
  return { url, timeoutMs, headers: checkPairs(`${where} http.headers`, options.headers) };
}

function checkScript(
  where: string,
  isUsed: boolean,
  isAsync: boolean,
  given: ScriptOptions | undefined,
): Bot["script"] {
  if (!isUsed) return unused(where, "script", given);
  const options = record(`${where} script`, given) as Partial<ScriptOptions>;
  refuseOthers(`${where} script`, options, ["command", "timeout", "maxOutput", "env", "cwd"]);
  const { command } = options;
  if (
    !Array.isArray(command) ||
    command.length === 0 ||
    !command.every((word) => typeof word === "string" && word !== "")
  ) {
    throw new OptionInvalid(
      `${where} script.command is ${shown(command)}.`,
      'Give the program and its arguments as a list: ["/usr/local/bin/answer", "--json"]. There is no shell.',
    );
  }
  const timeoutMs = positive(`${where} script.timeout`, options.timeout ?? (isAsync ? "60s" : "20s"));
  if (timeoutMs > SCRIPT_CAP_MS)
    throw new OptionInvalid(`${where} script.timeout is ${shown(options.timeout)}.`, "At most 1h.");
  if (options.cwd !== undefined && typeof options.cwd !== "string") {
    throw new OptionInvalid(`${where} script.cwd is ${shown(options.cwd)}.`, "Give a folder.");
  }
  return {
    ...options,
    command: command as unknown as ScriptOptions["command"],
    env: checkPairs(`${where} script.env`, options.env),
    timeoutMs,
    maxOutput: checkCount(`${where} script.maxOutput`, options.maxOutput ?? 65_536, 1, 10_485_760),
  };
}

function unused(where: string, name: string, given: unknown): undefined {
  if (given === undefined) return;
  throw new OptionInvalid(`${where} has ${name}, and another handler.`, `Set handler: ${name}, or leave ${name} out.`);
}

function checkLadder(where: string, ladder: unknown): readonly Duration[] {
  if (ladder === undefined) return LADDER;
  if (!Array.isArray(ladder) || ladder.length === 0) {
    throw new OptionInvalid(`${where} ladder is ${shown(ladder)}.`, 'Give a list: ["30s", "2m", "10m", "1h"].');
  }
  for (const [index, rung] of ladder.entries()) durationMs(`${where} ladder[${index}]`, rung);
  return ladder as Duration[];
}

function checkUsers(where: string, users: unknown): ReadonlySet<number> | undefined {
  if (users === undefined) return undefined;
  if (!Array.isArray(users) || users.length === 0 || !users.every((id) => Number.isSafeInteger(id))) {
    throw new OptionInvalid(
      `${where} is ${shown(users)}.`,
      "Give the ids of users as whole numbers: [12345678]. Leave it out to let everybody in.",
    );
  }
  return new Set(users as number[]);
}

function checkAuthSecret(secret: unknown): string | undefined {
  if (secret === undefined) return undefined;
  if (typeof secret === "string" && secret.length >= 8 && secret === secret.trim()) return secret;
  throw new OptionInvalid(
    "AUTH_SECRET is shorter than 8 characters, or has a space at an end.",
    "Use a long one: openssl rand -hex 16.",
  );
}

function checkTexts(given: unknown): Texts {
  const texts = record("texts", given);
  refuseOthers("texts", texts, Object.keys(TEXTS));
  for (const [name, text] of Object.entries(texts)) {
    if (typeof text !== "string" || text === "" || text.length > 4_096) {
      throw new OptionInvalid(`texts.${name} is ${shown(text)}.`, "Give a text of 1 to 4096 characters.");
    }
  }
  return { ...TEXTS, ...(texts as Partial<Texts>) };
}

function checkUrl(where: string, url: unknown): string {
  if (typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url)) {
    const { username, password } = new URL(url);
    if (username === "" && password === "") return url;
    throw new OptionInvalid(`${where} holds a user name or a password.`, "Give them in headers.");
  }
  throw new OptionInvalid(`${where} is ${shown(url)}.`, "Write an address such as http://127.0.0.1:8080/telegram.");
}

/** An address that paths are put behind. */
function checkRoot(where: string, url: unknown): string {
  return checkUrl(where, url).replace(/\/+$/, "");
}

function checkForm(where: string, name: string, value: unknown, form: RegExp, hint: string): string {
  if (typeof value === "string" && form.test(value)) return value;
  // Not shown: it may be nearly right.
  throw new OptionInvalid(`${where} has ${value === undefined ? "no" : "an unusable"} ${name}.`, hint);
}

function checkPairs(where: string, pairs: unknown): Record<string, string> {
  if (pairs === undefined) return {};
  for (const [name, value] of Object.entries(record(where, pairs))) {
    if (typeof value !== "string") throw new OptionInvalid(`${where}.${name} is no text.`, "Put it in quotes.");
  }
  return pairs as Record<string, string>;
}

function checkCount(where: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  throw new OptionInvalid(`${where} is ${shown(value)}.`, `Give a whole number from ${least} to ${most}.`);
}

function positive(where: string, value: unknown): number {
  const ms = durationMs(where, value);
  if (ms > 0) return ms;
  throw new OptionInvalid(`${where} is ${shown(value)}.`, "It has to be longer than that.");
}

function timerMs(where: string, value: unknown): number {
  const ms = positive(where, value);
  if (ms <= TIMER_CAP_MS) return ms;
  throw new OptionInvalid(`${where} is ${shown(value)}.`, "At most 596h.");
}

function record(where: string, value: unknown): Record<string, unknown> {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  // Not shown: a list of bots, or a bot that is a text, has a token in it.
  const what = value === undefined ? "missing" : Array.isArray(value) ? "a list" : `no set of names (${typeof value})`;
  throw new OptionInvalid(`${where} is ${what}.`, "Give names with values: { … }.");
}

function refuseOthers(where: string, given: object, known: readonly string[]): void {
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other !== undefined)
    throw new OptionInvalid(`${where} has "${other.slice(0, 40)}".`, `There are ${known.join(", ")}.`);
}

function shown(value: unknown): string {
  return value === undefined ? "missing" : (JSON.stringify(value) ?? typeof value).slice(0, 100);
}
