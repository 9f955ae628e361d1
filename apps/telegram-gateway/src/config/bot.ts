// What a bot is, after its configuration was checked.
import type { Duration, JobLog, SqlTransaction } from "holdfast";
import type { Update } from "../update.ts";

export interface Answer {
  /** What the user is told. Nothing, if it is left out. */
  text?: string;
  /** Effects on the database, in the commit that ends the update: exactly once, however often it ran. */
  commit?: (tx: SqlTransaction) => Promise<void>;
}

export interface HandlerContext {
  bot: string;
  /** What the user wrote. */
  text: string;
  /** 1 for the first try. */
  attempt: number;
  /** Aborted when its time is over, or nobody waits for the answer any more. */
  signal: AbortSignal;
  log: JobLog;
}

/** A handler in TypeScript. An error it throws is retried if the bot is async. */
export type HandlerFunction = (
  update: Update,
  context: HandlerContext,
) => Promise<Answer | string | void> | Answer | string | void;

export interface HttpOptions {
  url: string;
  /** 5s if not given, at most 30s. */
  timeout?: Duration;
  headers?: Record<string, string>;
}

export interface ScriptOptions {
  /** The program and its arguments; there is no shell. */
  command: readonly [string, ...string[]];
  /** 60s if not given (20s for a bot that is not async), at most 1h. */
  timeout?: Duration;
  /** Bytes of output; 64 KiB if not given. */
  maxOutput?: number;
  /** Besides PATH, LANG and the bot's and the update's names it is given nothing of this process's environment. */
  env?: Record<string, string>;
  cwd?: string;
}

export interface BotOptions {
  /** From @BotFather. */
  token: string;
  /** What Telegram must show with each update: 16 to 256 letters, digits, _ and -. */
  secret: string;
  handler: "echo" | "http" | "script" | "auth" | HandlerFunction;
  http?: HttpOptions;
  script?: ScriptOptions;
  /** Answer Telegram at once and do the work in a job. */
  async?: boolean;
  /** Only for who has shown the secret to the bot with the handler `auth`. True if not given. */
  requireAuth?: boolean;
  /** How long a handler may take before the user is told that it goes on. 10s if not given, at most 596h. */
  slowAfter?: Duration;
  /** The pauses between the tries. 30s, 2m, 10m, 1h if not given. */
  ladder?: readonly Duration[];
  /** 5 if not given. */
  attempts?: number;
  /** How long one run of a handler in TypeScript may take: 10m if not given, at most 596h; 30s for a bot that is not async. */
  timeout?: Duration;
}

export interface Texts {
  slow: string;
  gaveUp: string;
  failed: string;
  signIn: string;
  signedIn: string;
  wrongSecret: string;
  tooManyTries: string;
}

export interface GatewayOptions {
  bots: Record<string, BotOptions>;
  /** Whoever is not in the list is not answered at all. Everybody, if not given. */
  allowedUsers?: readonly number[];
  authSecret?: string;
  /** How long a sign-in counts: 24h if not given. */
  sessionTtl?: Duration;
  /** Telegram's, or that of your own Bot API server. */
  apiRoot?: string;
  /** Where Telegram reaches this server. */
  publicUrl?: string;
  /** How long the transcripts stay: as long as finished jobs, 168h, if not given. */
  keep?: Duration | "forever";
  texts?: Partial<Texts>;
}

export interface Bot {
  readonly slug: string;
  readonly token: string;
  readonly secret: string;
  readonly handler: BotOptions["handler"];
  readonly http: { url: URL; timeoutMs: number; headers: Record<string, string> } | undefined;
  readonly script: (ScriptOptions & { timeoutMs: number; maxOutput: number }) | undefined;
  readonly isAsync: boolean;
  readonly requiresAuth: boolean;
  readonly slowAfterMs: number;
  readonly ladder: readonly Duration[];
  readonly attempts: number;
  /** How long the handler may take. */
  readonly timeoutMs: number;
}

export interface Gateway {
  readonly bots: ReadonlyMap<string, Bot>;
  readonly allowedUsers: ReadonlySet<number> | undefined;
  readonly authSecret: string | undefined;
  readonly sessionTtlMs: number;
  readonly apiRoot: string;
  readonly publicUrl: string | undefined;
  /** null: for ever. */
  readonly keepMs: number | null;
  readonly texts: Texts;
  /** Bots that only show how it works: they live in `holdfast dev`, with a stand-in for Telegram. */
  readonly isSample: boolean;
}

/** "http" for the words that people read; a function is "typescript". */
export function handlerName({ handler }: Pick<Bot, "handler">): string {
  return typeof handler === "function" ? "typescript" : handler;
}
