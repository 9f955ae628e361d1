// holdfast token: who may call the HTTP API. Works on the database itself, so that the first token can be made before
// any server runs; if a running server holds the embedded folder, through that server. stdout of create is the token.
import { userInfo } from "node:os";
import type { Command } from "commander";
import { FolderLocked } from "../../errors.ts";
import type { AccessTokenView, NewTokenBody } from "../../http/contracts/tokens.ts";
import { isRole, ROLES } from "../../shared/roles.ts";
import { toNewToken, toTokenView } from "../../http/token-view.ts";
import { EXIT } from "../exit-codes.ts";
import { type DataFlags, isForPrograms, note, print, printData, table } from "../output.ts";
import { Problem } from "../problem.ts";
import { openOptions, refuseAccidentalEmbedded, type ServerFlags } from "../settings.ts";
import { readApi, readSettings, withDatabaseFlags, withDataFlags } from "./options.ts";

interface TokenFlags extends ServerFlags, DataFlags {
  config?: string;
  url?: string;
}

interface CreateFlags extends TokenFlags {
  name?: string;
  role?: string;
  recipient?: string;
  owner?: string;
  expires?: string;
}

/** What both ways offer. */
interface Door {
  create(token: NewTokenBody): Promise<AccessTokenView & { token: string }>;
  list(): Promise<AccessTokenView[]>;
  revoke(id: string): Promise<void>;
}

export function addToken(program: Command): void {
  const token = program.command("token").summary("make, list and revoke tokens for the HTTP API");
  withTokenFlags(
    token
      .command("create")
      .description("Makes a token and prints it. It is shown this once; only a hash is stored.")
      .option("--name <name>", "how people recognise it (default: your user name)")
      .option("--role <role>", "viewer, operator or admin (default viewer)")
      .option("--recipient <recipient>", "it opens only this recipient's inbox")
      .option("--owner <owner>", "it opens only what is this owner's")
      .option("--expires <duration>", 'how long it counts, such as "30d" (default: for ever)'),
  ).action(runCreate);
  withTokenFlags(token.command("list", { isDefault: true }).description("lists tokens, without secrets")).action(
    runList,
  );
  withTokenFlags(
    token
      .command("revoke")
      .description("ends tokens, from the next request on")
      .argument("<id...>", "one id or several"),
  ).action(runRevoke);
}

function withTokenFlags(command: Command): Command {
  return withDataFlags(
    withDatabaseFlags(command).option(
      "--url <url>",
      "through this server instead of the database (its token is HOLDFAST_TOKEN)",
    ),
  ).option("-v, --verbose", "say more about errors");
}

async function runCreate(flags: CreateFlags): Promise<void> {
  const { role = "viewer", recipient, owner, expires } = flags;
  if (!isRole(role)) {
    throw new Problem(`--role is ${JSON.stringify(role)}.`, `Give one of ${ROLES.join(", ")}.`, EXIT.usage);
  }
  const body: NewTokenBody = { name: flags.name ?? userInfo().username, role, recipient, owner, expires };
  const made = await through(flags, (door) => door.create(body));
  if (printData(flags, made)) return;
  print(made.token);
  const scope = made.recipient ?? made.owner;
  note(`${made.role}${scope === null ? "" : ` for ${scope}`}, id ${made.id}. Keep it: it is not shown again.`);
}

async function runList(flags: TokenFlags): Promise<void> {
  const tokens = await through(flags, (door) => door.list());
  if (printData(flags, { tokens }, tokens)) return;
  if (tokens.length === 0) return note("There are no tokens. `holdfast token create` makes one.");
  const rows = tokens.map((token) => [
    token.id,
    token.name,
    token.role,
    token.recipient === null ? (token.owner === null ? "" : `owner ${token.owner}`) : `recipient ${token.recipient}`,
    token.revokedAt === null ? (token.expiresAt === null ? "" : `until ${token.expiresAt}`) : "revoked",
    token.lastUsedAt ?? "never",
  ]);
  print(table(["ID", "NAME", "ROLE", "SCOPE", "STATE", "LAST USED"], rows));
}

async function runRevoke(ids: string[], flags: TokenFlags): Promise<void> {
  await through(flags, async (door) => {
    for (const id of ids) {
      await door.revoke(id);
      if (!isForPrograms(flags)) print(`${id} is revoked.`);
    }
  });
  const revoked = ids.map((id) => ({ id, revoked: true }));
  printData(flags, revoked, revoked);
}

async function through<T>(flags: TokenFlags, work: (door: Door) => Promise<T>): Promise<T> {
  if (flags.url !== undefined) return await work(await serverDoor(flags));
  const { settings, isProduction } = await readSettings(flags);
  refuseAccidentalEmbedded(settings, isProduction);
  const { open } = await import("../../open.ts");
  const hf = await open(openOptions(settings)).catch((error: unknown) => {
    if (error instanceof FolderLocked) return null;
    throw error;
  });
  // A running server has the folder: it does the same for us.
  if (hf === null) return await work(await serverDoor(flags));
  try {
    return await work({
      async create(token) {
        const { token: secret, ...made } = await hf.tokens.create(toNewToken(token));
        return { ...toTokenView(made), token: secret };
      },
      list: async () => (await hf.tokens.list()).map(toTokenView),
      revoke: (id) => hf.tokens.revoke(id),
    });
  } finally {
    await hf.close();
  }
}

async function serverDoor(flags: TokenFlags): Promise<Door> {
  const api = await readApi(flags);
  return {
    create: (token) => api.createToken(token),
    list: async () => (await api.listTokens()).tokens,
    revoke: async (id) => void (await api.revokeToken(id)),
  };
}
