// Workspaces: made, found, listed. A token that opens one is made with it, and is shown once.
import { randomUUID } from "node:crypto";
import { cleanName } from "./text.ts";
import type { Holdfast } from "holdfast";
import { noSuchWorkspace, Refused } from "./refused.ts";

export interface Workspace {
  id: string;
  name: string;
  /** What counts: no mode is push. */
  mode: "poll" | "push";
  callbackUrl: string | null;
  callbackToken: string | null;
  createdAt: Date;
}

interface Row {
  id: string;
  name: string;
  delivery_mode: "poll" | "push" | null;
  callback_url: string | null;
  callback_token: string | null;
  created_at: Date;
}

const COLUMNS = "id, name, delivery_mode, callback_url, callback_token, created_at";

export interface NewWorkspace {
  name: string;
  mode: "poll" | "push" | null;
  callbackUrl: string | null;
  callbackToken: string | null;
}

export async function addWorkspace(
  hf: Holdfast,
  { name, mode, callbackUrl, callbackToken }: NewWorkspace,
): Promise<Workspace & { token: string }> {
  const id = randomUUID();
  const { rows } = await hf.sql.query<Row>(
    `insert into :schema.chat_uploads_workspaces (id, name, delivery_mode, callback_url, callback_token, created_at)
     values ($1, $2, $3, $4, $5, :schema.clock()) returning ${COLUMNS}`,
    [id, name, mode, callbackUrl, callbackToken],
  );
  const { token } = await hf.tokens.create({ name: `workspace ${name}`, role: "operator", recipient: id });
  return { ...toWorkspace(rows[0]!), token };
}

export async function findWorkspace(hf: Holdfast, id: string): Promise<Workspace> {
  const { rows } = await hf.sql.query<Row>(`select ${COLUMNS} from :schema.chat_uploads_workspaces where id = $1`, [
    id,
  ]);
  if (rows[0]) return toWorkspace(rows[0]);
  throw noSuchWorkspace();
}

export async function listWorkspaces(hf: Holdfast): Promise<Workspace[]> {
  const { rows } = await hf.sql.query<Row>(
    `select ${COLUMNS} from :schema.chat_uploads_workspaces order by created_at, id limit 200`,
  );
  return rows.map(toWorkspace);
}

function toWorkspace(row: Row): Workspace {
  return {
    id: row.id,
    name: row.name,
    mode: row.delivery_mode ?? "push",
    callbackUrl: row.callback_url,
    callbackToken: row.callback_token,
    createdAt: row.created_at,
  };
}

/** From a request's body. */
export function readNewWorkspace(body: unknown): NewWorkspace {
  const given = (body !== null && typeof body === "object" ? body : {}) as Record<string, unknown>;
  const { name, delivery_mode: mode = null, callback_url: url = null, callback_token: token = null } = given;
  const refuse = (message: string, hint: string): Refused => new Refused(422, "CHAT_WORKSPACE_INVALID", message, hint);
  if (typeof name !== "string" || cleanName(name) === "")
    throw refuse("A workspace has a name.", 'Send {"name": "…"}.');
  if (mode !== null && mode !== "poll" && mode !== "push") {
    throw refuse("delivery_mode is neither poll nor push.", "Send one of them; without it, it is push.");
  }
  if (url !== null && (typeof url !== "string" || !isCallback(url))) {
    throw refuse("callback_url is not an http or https URL without user and password.", "Send a whole URL.");
  }
  if (token !== null && (typeof token !== "string" || !/^[\x21-\x7e]{1,500}$/.test(token))) {
    throw refuse("callback_token is not a token.", "Send up to 500 letters and digits.");
  }
  if (mode === "push" && url === null) throw refuse("Push needs a callback_url.", "Send one, or use poll.");
  return { name: cleanName(name), mode, callbackUrl: url, callbackToken: token };
}

function isCallback(url: string): boolean {
  if (url.length > 2_000 || !URL.canParse(url)) return false;
  const { protocol, username, password } = new URL(url);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}
