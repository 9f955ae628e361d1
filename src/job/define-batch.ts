// defineBatch(kind, options): what a kind of batch is. Checked once, here, like a kind of job: and it is one, whose jobs are
// the items of batches. `work()` takes it beside others; `hf.batches.create` makes batches of it.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { Closed, OptionInvalid } from "../errors.ts";
import { durationMs, retentionMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import type { OutcomeRule } from "./batch.ts";
import { type AnyJobKind, checkName, defineJob, type JobKind } from "./define-job.ts";
import type { BatchPlan, ItemContext, ItemEnd } from "./item.ts";
import type { Backoff } from "./retry-policy.ts";

/** What `defineBatch` takes; docs/options.md has the defaults. */
export interface BatchOptions<Item, Input, Label extends string> {
  /** Any Standard Schema, for one item; checked when it is added and again when it runs. */
  schema?: StandardSchemaV1<Input, Item>;
  queue?: string;
  /** How many items of one batch run at once, in all processes together. */
  concurrency?: number;
  attempts?: number;
  backoff?: Backoff;
  lease?: Duration;
  timeout?: Duration;
  callTimeout?: Duration;
  /** What an item can come to, besides `error` and `cancelled`. The first is what a plain return means. */
  outcomes?: Readonly<Record<Label, OutcomeRule>>;
  /** How long a finished batch stays, with its items. */
  keep?: Duration | "forever";
  keepKeys?: Duration | "forever";
  /** A batch that is not closed and gets no more items for so long is cancelled. */
  keepOpen?: Duration;
  /** Fields of items and results that nobody but their owner sees over HTTP and on the dashboard. */
  redact?: readonly string[];
  /** What is handed back to the owner: how long it waits for the ack, how often it is tried again. */
  handBack?: HandBackOptions<Label>;
  run(item: ItemContext<Item, Label>): Promise<ItemEnd<Label>> | ItemEnd<Label>;
}

/** `handBack` of `defineBatch`: what waits for an ack of the batch's owner. */
export interface HandBackOptions<Label extends string> {
  within?: Duration;
  /** How often an item starts again because nobody acked it; after that it is an error. */
  tries?: number;
  /** What an item came to whose parcel was acked by somebody who did not say. */
  ackedAs?: NoInfer<Label>;
}

/** A kind of batch: what `hf.batches.create` and `work` take. */
export interface BatchKind<Item = unknown, Input = Item, Label extends string = string> extends JobKind<never, never> {
  readonly batch: BatchPlan<Item, Input, Label>;
}

/** Any kind of batch, whatever its items: for lists of kinds. */
// oxlint-disable-next-line typescript/no-explicit-any -- items are contravariant; only `any` lets a list hold kinds of different items
export type AnyBatchKind = BatchKind<any, any, any>;

const KNOWN = [
  "schema",
  "queue",
  "concurrency",
  "attempts",
  "backoff",
  "lease",
  "timeout",
  "callTimeout",
  "outcomes",
  "keep",
  "keepKeys",
  "keepOpen",
  "redact",
  "handBack",
  "run",
];

export const BATCH_DEFAULTS = {
  concurrency: 10,
  attempts: 3,
  backoff: ["5s", "30s"],
  keep: "168h",
  keepKeys: "30d",
  keepOpen: "24h",
  within: "24h",
  tries: 3,
} as const;

const MAX_CONCURRENCY = 10_000;
const MOST_OUTCOMES = 50;
/** States of items that are no outcomes of a kind. */
const RESERVED = ["pending", "running", "handed-over", "error", "cancelled"];
const LABEL_FORM = /^[a-z][a-z0-9-]{0,62}$/;

/**
 * A kind of batch: what one item is, how it runs, and what it can come to. Give it to `hf.work` and
 * `hf.batches.create`.
 */
export function defineBatch<Item = unknown, Input = Item, const Label extends string = "done">(
  kind: string,
  options: BatchOptions<Item, Input, Label>,
): BatchKind<Item, Input, Label> {
  checkName("The batch kind", kind);
  const where = `defineBatch("${kind}")`;
  if (options === null || typeof options !== "object") {
    throw new OptionInvalid(`${where} got no options.`, "Give at least { run }.");
  }
  refuseUnknown(where, options, KNOWN);
  const { schema, queue, lease, timeout, callTimeout, redact, run } = options;
  if (typeof run !== "function") {
    throw new OptionInvalid(`${where}.run is not a function.`, "Give the handler: async run(item) { … }.");
  }
  if (schema !== undefined && typeof schema["~standard"]?.validate !== "function") {
    throw new OptionInvalid(`${where}.schema is not a Standard Schema.`, "Zod, Valibot and ArkType schemas are.");
  }
  const outcomes = checkOutcomes(where, options.outcomes ?? ({ done: {} } as Record<Label, OutcomeRule>));
  const labels = Object.keys(outcomes) as Label[];
  const hand = options.handBack ?? {};
  refuseUnknown(`${where}.handBack`, hand, ["within", "tries", "ackedAs"]);
  const batch: BatchPlan<Item, Input, Label> = Object.freeze({
    concurrency: checkConcurrency(`${where}.concurrency`, options.concurrency ?? BATCH_DEFAULTS.concurrency),
    outcomes,
    labels,
    first: labels[0]!,
    keepMs: retentionMs(`${where}.keep`, options.keep ?? BATCH_DEFAULTS.keep),
    openMs: atLeastASecond(`${where}.keepOpen`, options.keepOpen ?? BATCH_DEFAULTS.keepOpen),
    handMs: atLeastASecond(`${where}.handBack.within`, hand.within ?? BATCH_DEFAULTS.within),
    handTries: checkTries(`${where}.handBack.tries`, hand.tries ?? BATCH_DEFAULTS.tries),
    ackedAs: hand.ackedAs === undefined ? labels[0]! : checkLabel(`${where}.handBack.ackedAs`, hand.ackedAs, labels),
    schema,
    run,
  });
  const job = defineJob<never, never>(kind, {
    ...(queue !== undefined && { queue }),
    ...(lease !== undefined && { lease }),
    ...(timeout !== undefined && { timeout }),
    ...(callTimeout !== undefined && { callTimeout }),
    ...(redact !== undefined && { redact }),
    attempts: options.attempts ?? BATCH_DEFAULTS.attempts,
    backoff: options.backoff ?? [...BATCH_DEFAULTS.backoff],
    keepKeys: options.keepKeys ?? BATCH_DEFAULTS.keepKeys,
    // work() puts the item's handler around the batch's own client.
    run: () => {
      throw new Closed(`${kind} is a batch kind, and runs only under work().`, "Start it with hf.work([kind]).");
    },
  });
  return Object.freeze({ ...job, batch });
}

function checkOutcomes<Label extends string>(
  where: string,
  given: Readonly<Record<Label, OutcomeRule>>,
): Readonly<Record<Label, OutcomeRule>> {
  const labels = given !== null && typeof given === "object" ? Object.keys(given) : [];
  if (labels.length < 1 || labels.length > MOST_OUTCOMES) {
    throw new OptionInvalid(
      `${where}.outcomes has ${labels.length} outcomes.`,
      `Give 1 to ${MOST_OUTCOMES}, such as { saved: {}, duplicate: {} }.`,
    );
  }
  const checked: Record<string, OutcomeRule> = {};
  for (const label of labels) {
    const at = `${where}.outcomes["${label}"]`;
    if (!LABEL_FORM.test(label) || RESERVED.includes(label)) {
      const hint = RESERVED.includes(label)
        ? `${RESERVED.join(", ")} are there for every kind; leave it out.`
        : "Use 1 to 63 lower-case letters, digits and -, and start with a letter.";
      throw new OptionInvalid(`${at} cannot be the name of an outcome.`, hint);
    }
    const rule: unknown = given[label as Label];
    if (rule === null || typeof rule !== "object") throw new OptionInvalid(`${at} is ${String(rule)}.`, "Give {}.");
    refuseUnknown(at, rule, ["countsAs", "warning"]);
    const { countsAs, warning } = rule as OutcomeRule;
    if (countsAs !== undefined) checkLabel(`${at}.countsAs`, countsAs, labels);
    if (warning !== undefined && typeof warning !== "boolean") {
      throw new OptionInvalid(`${at}.warning is ${String(warning)}.`, "Give true or false.");
    }
    checked[label] = Object.freeze({ ...(countsAs !== undefined && { countsAs }), ...(warning && { warning }) });
  }
  return Object.freeze(checked);
}

function checkLabel<Label extends string>(what: string, label: unknown, labels: readonly Label[]): Label {
  if (labels.includes(label as Label)) return label as Label;
  throw new OptionInvalid(`${what} is ${JSON.stringify(label)}.`, `Give one of ${labels.join(", ")}.`);
}

export function checkConcurrency(what: string, value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_CONCURRENCY) return value;
  throw new OptionInvalid(`${what} is ${String(value)}.`, `Give a whole number from 1 to ${MAX_CONCURRENCY}.`);
}

function checkTries(what: string, value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 1_000) return value;
  throw new OptionInvalid(`${what} is ${String(value)}.`, "Give a whole number from 0 to 1000.");
}

function atLeastASecond(what: string, value: unknown): number {
  const ms = durationMs(what, value);
  if (ms >= 1_000) return ms;
  throw new OptionInvalid(`${what} is ${JSON.stringify(value)}.`, 'Give at least "1s".');
}

export function isBatchKind(kind: AnyJobKind): kind is AnyBatchKind {
  return kind.batch !== undefined;
}
