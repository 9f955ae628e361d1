// Calls one route of the API. Its types are those of the contract. The token is kept for the tab only.
import { signal } from "@preact/signals";
import type { OutputOf } from "#src/http/contract.js";
import type { Contracts } from "#src/http/contracts.js";
import { ROUTES, type RouteName } from "./routes.ts";

export type Output<Name extends RouteName> = OutputOf<Contracts[Name]>;

export interface CallInput {
  params?: Record<string, string>;
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  /** JSON that is sent as it stands: it may hold numbers that JavaScript would round. */
  bodyText?: string;
  signal?: AbortSignal;
}

/** What the server said, or that it said nothing. */
export class CallError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  constructor(status: number, code: string, message: string, hint: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

const STORE = "holdfast-token";
export const token = signal<string | null>(sessionStorage.getItem(STORE));
/** The server wants a token, or another one. */
export const isLocked = signal<string | null>(null);
/** Server's clock minus ours, in milliseconds. */
export const clockOffset = signal(0);

export function signIn(given: string | null): void {
  if (given === null) sessionStorage.removeItem(STORE);
  else sessionStorage.setItem(STORE, given);
  token.value = given;
  isLocked.value = null;
}

const base = new URL(".", document.baseURI.split("#")[0]);

export function headers(): Record<string, string> {
  return token.value === null ? {} : { authorization: `Bearer ${token.value}` };
}

export function urlOf(path: string, query: CallInput["query"] = {}): URL {
  const url = new URL(path.replace(/^\//, ""), base);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

export async function call<Name extends RouteName>(name: Name, input: CallInput = {}): Promise<Output<Name>> {
  const [method, pattern] = ROUTES[name].split(" ") as [string, string];
  const path = pattern.replace(/:(\w+)/g, (_, param: string) => encodeURIComponent(input.params?.[param] ?? ""));
  const init: RequestInit = { method, headers: headers(), signal: input.signal ?? null };
  const body = input.bodyText ?? (input.body === undefined ? undefined : JSON.stringify(input.body));
  if (body !== undefined) {
    init.headers = { ...headers(), "content-type": "application/json" };
    init.body = body;
  }
  let response: Response;
  try {
    response = await fetch(urlOf(path, input.query), init);
  } catch (error) {
    if (input.signal?.aborted) throw error;
    throw new CallError(0, "UNREACHABLE", "The server does not answer.", "It is asked again every few seconds.");
  }
  noteClock(response);
  const answer = (await response.json().catch(() => null)) as unknown;
  if (response.ok) return answer as Output<Name>;
  const { code, message, hint } = (answer as { error?: { code: string; message: string; hint: string } } | null)
    ?.error ?? {
    code: "UNKNOWN",
    message: `The server answered with ${response.status}.`,
    hint: "",
  };
  if (response.status === 401) isLocked.value = message;
  throw new CallError(response.status, code, message, hint);
}

function noteClock(response: Response): void {
  const at = Date.parse(response.headers.get("date") ?? "");
  if (Number.isNaN(at)) return;
  const offset = at - Date.now();
  // The header has whole seconds.
  if (Math.abs(offset - clockOffset.value) > 1_500) clockOffset.value = Math.abs(offset) > 1_500 ? offset : 0;
}
