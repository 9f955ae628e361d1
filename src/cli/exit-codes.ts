// What the process says by ending: one table. docs/cli.md has the same (a test compares).
import { PortUnavailable } from "../http/port-unavailable.ts";
import {
  DatabaseUnavailable,
  FolderLocked,
  HoldfastError,
  NotFound,
  OptionInvalid,
  StateConflict,
  WaitTimeout,
} from "../errors.ts";
import { Problem } from "./problem.ts";

export const EXIT = {
  /** It did what was asked; a server stopped cleanly after the first signal. */
  ok: 0,
  failed: 1,
  /** The command line, the environment or the configuration file is wrong. */
  usage: 2,
  /** The doctor found something wrong. */
  unwell: 3,
  /** The awaited job is dead or was cancelled; the awaited batch was cancelled or items of it failed. */
  jobFailed: 4,
  notFound: 5,
  /** The job's state does not allow it, the key stands for another payload, or a file is in the way. */
  conflict: 6,
  /** The database, or the server a command talks to, cannot be reached. */
  unreachable: 69,
  /** Not now: the folder is in use, or the server is without its database. */
  temporary: 75,
  waitTimeout: 124,
  /** A second Ctrl-C. */
  interrupted: 130,
  /** A second SIGTERM. */
  terminated: 143,
} as const;

const BY_CLASS: readonly [abstract new (...args: never) => HoldfastError, number][] = [
  [OptionInvalid, EXIT.usage],
  [DatabaseUnavailable, EXIT.unreachable],
  [FolderLocked, EXIT.temporary],
  [NotFound, EXIT.notFound],
  [StateConflict, EXIT.conflict],
  [WaitTimeout, EXIT.waitTimeout],
];

export interface Explained {
  message: string;
  hint: string | undefined;
  code: string | undefined;
  exitCode: number;
  /** Nobody foresaw it: the stack helps. */
  isUnexpected: boolean;
}

export function explain(error: unknown): Explained {
  if (error instanceof Problem) {
    return {
      message: error.message,
      hint: error.hint,
      code: error.code,
      exitCode: error.exitCode,
      isUnexpected: false,
    };
  }
  if (error instanceof HoldfastError) {
    const exitCode = BY_CLASS.find(([known]) => error instanceof known)?.[1] ?? EXIT.failed;
    return { message: error.message, hint: error.hint, code: error.code, exitCode, isUnexpected: false };
  }
  if (error instanceof PortUnavailable) {
    const { message, hint } = error;
    return { message, hint, code: undefined, exitCode: EXIT.failed, isUnexpected: false };
  }
  return refusedByPostgres(error) ?? unexpected(error);
}

/** What PostgreSQL itself says when it does not let us in. */
const REFUSALS: Record<string, string> = {
  "28P01": "Check the user and the password in the database URL.",
  "28000": "Check the user in the database URL, and what pg_hba.conf allows.",
  "3D000": "Create the database first, or correct its name in the database URL.",
  "42501": "Give this user the right, or run `holdfast migrate` as a user who has it.",
};

function refusedByPostgres(error: unknown): Explained | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  const hint = REFUSALS[error.code];
  if (hint === undefined) return undefined;
  const message = `PostgreSQL refuses: ${error.message}.`;
  return { message, hint, code: error.code, exitCode: EXIT.unreachable, isUnexpected: false };
}

function unexpected(error: unknown): Explained {
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const hint = "This was not foreseen. Run it again with --verbose to see where it comes from.";
  return { message, hint, code: undefined, exitCode: EXIT.failed, isUnexpected: true };
}
