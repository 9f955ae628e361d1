// The body of POST /jobs. What only JSON can get wrong is checked here (shape, types, unknown fields); ranges and forms
// are checked by hf.enqueue(), once for every caller.
import type { EnqueueOptions } from "../client/enqueue.ts";
import { OptionInvalid } from "../errors.ts";
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

interface Field {
  type: "string" | "number";
  example: string;
}

const FIELDS: Record<Exclude<keyof NewJobBody, "kind" | "payload">, Field> = {
  key: { type: "string", example: '"order-17"' },
  coalesce: { type: "string", example: '"search-index"' },
  group: { type: "string", example: '"customer-5"' },
  runAt: { type: "string", example: '"2030-01-31T08:00:00Z"' },
  delay: { type: "string", example: '"30s"' },
  priority: { type: "number", example: "10" },
  queue: { type: "string", example: '"default"' },
  attempts: { type: "number", example: "5" },
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
  refuseUnknown("The body", body, ["kind", "payload", ...Object.keys(FIELDS)], "field");
  const { kind, payload = null, ...rest }: Record<string, unknown> = { ...body };
  if (typeof kind !== "string" || kind === "") {
    throw new OptionInvalid(
      kind === undefined ? "The body has no kind." : `kind is ${shown(kind)}.`,
      'Give the name of a kind as text: "kind": "mail.send".',
    );
  }
  const options: Record<string, unknown> = {};
  for (const [name, { type, example }] of Object.entries(FIELDS)) {
    const value = rest[name];
    // The API itself shows what was not given as null.
    if (value === undefined || value === null) continue;
    if (typeof value !== type) {
      const wanted = type === "string" ? "text" : "number";
      throw new OptionInvalid(`${name} is ${shown(value)}.`, `Give a ${wanted}: "${name}": ${example}.`);
    }
    if (name === "runAt" && typeof value === "string" && !INSTANT.test(value)) {
      const hint = `Give an ISO 8601 time with its zone: "runAt": ${example}.`;
      throw new OptionInvalid(`runAt is ${shown(value)}.`, hint);
    }
    options[name] = value;
  }
  return { kind, payload, options };
}

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 100);
