// The body of POST /jobs. What only JSON can get wrong is checked here (shape, types, unknown fields); ranges and forms
// are checked by hf.enqueue(), once for every caller.
import type { EnqueueOptions } from "../client/enqueue.ts";
import { OptionInvalid } from "../errors.ts";
import type { Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";

export interface NewJobBody {
  kind: string;
  payload?: unknown;
  key?: string | null;
  coalesce?: string | null;
  group?: string | null;
  /** ISO 8601, with a time zone. */
  runAt?: string | null;
  delay?: string | null;
  priority?: number | null;
  queue?: string | null;
  attempts?: number | null;
}

const TYPES = {
  key: "string",
  coalesce: "string",
  group: "string",
  runAt: "string",
  delay: "string",
  priority: "number",
  queue: "string",
  attempts: "number",
} as const satisfies Record<Exclude<keyof NewJobBody, "kind" | "payload">, "string" | "number">;

const EXAMPLES: Record<keyof typeof TYPES, string> = {
  key: '"order-17"',
  coalesce: '"search-index"',
  group: '"customer-5"',
  runAt: '"2030-01-31T08:00:00Z"',
  delay: '"30s"',
  priority: "10",
  queue: '"default"',
  attempts: "5",
};

/** A time without a zone would mean the server's. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/i;

export interface NewJob {
  kind: string;
  payload: unknown;
  options: EnqueueOptions;
}

export function readNewJob(body: unknown): NewJob {
  if (body === null || typeof body !== "object" || Array.isArray(body)) {
    throw new OptionInvalid("The body is not a JSON object.", 'Send { "kind": "…", "payload": … }.');
  }
  refuseUnknown("The body", body, ["kind", "payload", ...Object.keys(TYPES)], "field");
  const { kind, payload = null, ...rest } = body as Record<string, unknown>;
  if (typeof kind !== "string" || kind === "") {
    throw new OptionInvalid(
      kind === undefined ? "The body has no kind." : `kind is ${JSON.stringify(kind)}.`,
      'Give the name of a kind as text: "kind": "mail.send".',
    );
  }
  const options: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(TYPES) as [keyof typeof TYPES, string][]) {
    const value = rest[name];
    // The API itself shows what was not given as null.
    if (value === undefined || value === null) continue;
    if (typeof value !== type) {
      throw new OptionInvalid(
        `${name} is ${JSON.stringify(value).slice(0, 100)}.`,
        `Give a ${type === "string" ? "text" : "number"}: "${name}": ${EXAMPLES[name]}.`,
      );
    }
    if (name === "runAt" && !INSTANT.test(value as string)) {
      throw new OptionInvalid(
        `runAt is ${JSON.stringify(value).slice(0, 100)}.`,
        `Give an ISO 8601 time with its zone: "runAt": ${EXAMPLES.runAt}.`,
      );
    }
    options[name] = value;
  }
  return { kind, payload, options: options as EnqueueOptions & { delay?: Duration } };
}
