// Where the configuration comes from: what the program gives, a YAML file, the environment. The environment fills in
// what the others leave out, under the names that the gateway before this one had.
import { existsSync, readFileSync } from "node:fs";
import { OptionInvalid } from "holdfast";
import { parse } from "yaml";
import { checkGateway } from "./check.ts";
import type { Gateway, GatewayOptions } from "./bot.ts";
import { sampleBots } from "./sample-bots.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Looked for in the folder where Holdfast is started, if nothing else is said. */
const FILE = "telegram.yaml";

/** Options, the path of a YAML file, or neither: then TELEGRAM_BOTS, telegram.yaml, or the sample bots. */
export function readGateway(given: GatewayOptions | string | undefined, env: Environment): Gateway {
  if (typeof given === "object") return checkGateway("telegramGateway()", withEnvironment(given, env));
  const path = given ?? env["TELEGRAM_BOTS"] ?? (existsSync(FILE) ? FILE : undefined);
  if (path === undefined) return checkGateway("The sample", sampleBots(), true);
  return checkGateway(path, withEnvironment(readYaml(path, env), env));
}

function withEnvironment(given: GatewayOptions, env: Environment): GatewayOptions {
  const from = (name: string): string | undefined => env[name]?.trim() || undefined;
  const users = from("ALLOWED_USERS");
  const filled = {
    allowedUsers: users === undefined ? undefined : users.split(/[\s,]+/).map(toUser),
    authSecret: from("AUTH_SECRET"),
    sessionTtl: from("AUTH_SESSION_TTL"),
    apiRoot: from("TELEGRAM_API_ROOT"),
    publicUrl: from("TELEGRAM_PUBLIC_URL"),
    keep: from("QUEUE_DONE_RETENTION"),
  };
  const known = Object.entries({ ...filled, ...given }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as unknown as GatewayOptions;
}

function toUser(text: string): number {
  const id = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(id)) return id;
  throw new OptionInvalid(`ALLOWED_USERS has ${JSON.stringify(text.slice(0, 40))}.`, "Give ids with commas: 123,456.");
}

function readYaml(path: string, env: Environment): GatewayOptions {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new OptionInvalid(`The bots' file ${path} cannot be read.`, "Check TELEGRAM_BOTS.", { cause: error });
  }
  try {
    return withVariables(path, parse(text), env) as GatewayOptions;
  } catch (error) {
    if (error instanceof OptionInvalid) throw error;
    const why = error instanceof Error ? (error.message.split("\n")[0] ?? "") : "";
    throw new OptionInvalid(`${path} is not YAML: ${why}`, "Correct the file.", { cause: error });
  }
}

/** A value that is ${NAME} is that variable: secrets do not belong into files. */
function withVariables(path: string, value: unknown, env: Environment): unknown {
  if (typeof value === "string") {
    const name = /^\$\{(\w+)\}$/.exec(value)?.[1];
    if (name === undefined) return value;
    const found = env[name]?.trim();
    if (found) return found;
    throw new OptionInvalid(`${path} wants the variable ${name}, which is not set.`, `Set ${name}.`);
  }
  if (Array.isArray(value)) return value.map((entry) => withVariables(path, entry, env));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, withVariables(path, entry, env)]));
}
