// What the handler of a batch is given for each item, and what it may return.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { OptionInvalid } from "../errors.ts";
import type { OutcomeRule } from "./batch.ts";
import type { Transaction } from "./caller-transaction.ts";
import type { JobContext } from "./handler.ts";
import { misfit } from "./misfit.ts";

/** How the server's part of an item ended. */
export class ItemResult {
  readonly label: string;
  readonly result: unknown;
  /** It is handed over to the owner as this parcel. */
  readonly parcelId: string | undefined;
  constructor(label: string, result: unknown, parcelId?: string) {
    this.label = label;
    this.result = result;
    this.parcelId = parcelId;
  }
}

/** The outcome, with a result if there is one; nothing: the first outcome of the kind. */
export type ItemEnd<Label extends string> =
  Label | { outcome: Label; result?: unknown } | ItemResult | void | undefined;

export interface HandBackFile {
  /** The file's name. */
  name?: string;
  type?: string;
}

/** What the handler of an item is given: all of a job's, and the item's own. */
export interface ItemContext<Item = unknown, Label extends string = string> extends Omit<
  JobContext<Item>,
  "complete" | "group" | "key"
> {
  readonly batchId: string;
  /** Its place in the batch, from 1. */
  readonly seq: number;
  /** How often it was handed over before, and nobody acked it. */
  readonly bounces: number;
  /** Effects, outcome and completion in one commit; refused when the batch was cancelled. */
  complete(tx: Transaction, outcome?: Label, result?: unknown): Promise<void>;
  /**
   * Puts the result into the inbox of the batch's owner, in the commit that ends the server's part: `return item.handBack(…)`.
   * The item is `handed-over` until the owner's ack names its outcome.
   */
  handBack(content: unknown, file?: HandBackFile): Promise<ItemResult>;
}

/** What a batch takes from its kind. */
export interface BatchPlan<Item = unknown, Input = unknown, Label extends string = string> {
  readonly concurrency: number;
  readonly outcomes: Readonly<Record<Label, OutcomeRule>>;
  readonly labels: readonly Label[];
  /** The outcome of a plain return. */
  readonly first: Label;
  readonly keepMs: number | null;
  readonly openMs: number;
  readonly handMs: number;
  readonly handTries: number;
  readonly ackedAs: Label;
  readonly schema: StandardSchemaV1<Input, Item> | undefined;
  run(item: ItemContext<Item, Label>): Promise<ItemEnd<Label>> | ItemEnd<Label>;
}

/** What the job of an item carries. */
export interface ItemJobPayload {
  batch: string;
  seq: number;
  bounces: number;
  item: unknown;
}

export function toItemResult(kind: string, plan: BatchPlan, returned: unknown): ItemResult {
  if (returned instanceof ItemResult) return returned;
  if (returned === undefined || returned === null) return new ItemResult(plan.first, undefined);
  const { outcome, result } =
    typeof returned === "object" ? (returned as { outcome?: unknown; result?: unknown }) : { outcome: returned };
  return new ItemResult(checkOutcome(kind, plan, outcome), result);
}

export function checkOutcome(kind: string, plan: Pick<BatchPlan, "labels">, outcome: unknown): string {
  if (typeof outcome === "string" && plan.labels.includes(outcome)) return outcome;
  throw new OptionInvalid(
    `${kind} has no outcome ${typeof outcome === "string" ? JSON.stringify(outcome) : String(outcome)}.`,
    `Give one of ${plan.labels.join(", ")}, or { outcome, result }.`,
  );
}

/** One item as the schema says it is; or a PayloadInvalid that lists what is wrong. */
export async function parseItem(kind: string, plan: BatchPlan, item: unknown): Promise<unknown> {
  if (!plan.schema) return item;
  const outcome = await plan.schema["~standard"].validate(item);
  if (!outcome.issues) return outcome.value;
  throw misfit(`An item of ${kind}`, outcome.issues, "Correct the item, or the schema of this kind.");
}
