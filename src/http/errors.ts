// How the HTTP API says no: always { "error": { code, message, hint } }, never a stack, never what a stranger should
// not read. What Holdfast itself refuses keeps its own code (docs/errors.md); what only HTTP can refuse has one from
// the table below (docs/http.md). Anything else is a 500 that names an incident; the details go to `onError`.
import { randomBytes } from "node:crypto";
import {
  Closed,
  ContentCorrupt,
  DatabaseUnavailable,
  HoldfastError,
  KindUnknown,
  NotFound,
  OptionInvalid,
  PayloadInvalid,
  QuotaExceeded,
  StateConflict,
  TooLarge,
  WaitTimeout,
} from "../errors.ts";

export const HTTP_CODES = {
  HOLDFAST_HTTP_REQUEST_UNREADABLE: 400,
  HOLDFAST_HTTP_UNAUTHORIZED: 401,
  HOLDFAST_HTTP_FORBIDDEN: 403,
  HOLDFAST_HTTP_HOST_REFUSED: 403,
  HOLDFAST_HTTP_ORIGIN_REFUSED: 403,
  HOLDFAST_HTTP_ROUTE_UNKNOWN: 404,
  HOLDFAST_HTTP_METHOD_NOT_ALLOWED: 405,
  HOLDFAST_HTTP_BODY_TOO_SLOW: 408,
  HOLDFAST_HTTP_BODY_TOO_LARGE: 413,
  HOLDFAST_HTTP_TYPE_UNSUPPORTED: 415,
  HOLDFAST_HTTP_RANGE_UNSATISFIABLE: 416,
  HOLDFAST_HTTP_INTERNAL: 500,
  HOLDFAST_HTTP_TOO_MANY_STREAMS: 503,
} as const;

export type HttpCode = keyof typeof HTTP_CODES;

/** A refusal that only exists over HTTP. */
export class Refusal extends Error {
  readonly code: HttpCode;
  readonly hint: string;
  readonly headers: Record<string, string>;
  constructor(code: HttpCode, message: string, hint: string, headers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.headers = headers;
  }
}

/** The body of every answer that is an error. */
export interface ErrorBody {
  error: { code: string; message: string; hint: string };
}

export interface ErrorAnswer {
  status: number;
  body: ErrorBody;
  headers: Record<string, string>;
}

const RETRY_AFTER_SECONDS = 2;

/** Status by class. OptionInvalid is not here: what it means depends on where the value stood. */
const STATUSES: readonly [abstract new (...args: never) => HoldfastError, number][] = [
  [PayloadInvalid, 422],
  [KindUnknown, 422],
  [NotFound, 404],
  [StateConflict, 409],
  [TooLarge, 413],
  [ContentCorrupt, 422],
  [QuotaExceeded, 507],
  [DatabaseUnavailable, 503],
  [Closed, 503],
  [WaitTimeout, 504],
];

export interface ToAnswerInput {
  error: unknown;
  /** 422 when the value stood in a body, 400 when it stood in the URL. */
  invalidStatus: 400 | 422;
  onError: (error: unknown, incident: string) => void;
}

export function toErrorAnswer({ error, invalidStatus, onError }: ToAnswerInput): ErrorAnswer {
  if (error instanceof Refusal) {
    return { status: HTTP_CODES[error.code], body: bodyOf(error), headers: error.headers };
  }
  if (error instanceof HoldfastError) {
    const status =
      error instanceof OptionInvalid ? invalidStatus : STATUSES.find(([known]) => error instanceof known)?.[1];
    if (status !== undefined) {
      return {
        status,
        body: bodyOf(error),
        headers: status === 503 ? { "retry-after": `${RETRY_AFTER_SECONDS}` } : {},
      };
    }
  }
  const incident = randomBytes(6).toString("hex");
  onError(error, incident);
  const refusal = new Refusal(
    "HOLDFAST_HTTP_INTERNAL",
    `Something failed inside the server (incident ${incident}).`,
    "The server's log has the details under that number.",
  );
  return { status: 500, body: bodyOf(refusal), headers: {} };
}

function bodyOf({ code, message, hint }: { code: string; message: string; hint: string }): ErrorBody {
  return { error: { code, message: asField(message), hint } };
}

/** Messages of the client name the function; whoever sent a body knows only its fields. */
function asField(message: string): string {
  return message
    .replace(/^(Batch \S+: )?(?:enqueue|batches\.\w+)\(\) (has )?/, (_, batch = "", has?: string) => {
      return `${batch as string}${has ? "The body has " : ""}`;
    })
    .replace(/^item (?=\d)/, "Item ");
}
