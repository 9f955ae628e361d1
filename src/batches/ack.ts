// What an owner says about an item that was handed over, checked.
import { OptionInvalid } from "../errors.ts";
import type { Batch } from "../job/batch.ts";
import { fingerprintOf } from "../job/fingerprint.ts";
import { type ErrorRecord, recordError } from "../job/outcome.ts";
import { toStorableJson } from "../job/storable.ts";
import type { EndHanded } from "../store/batches/end-handed.ts";
import type { AckOptions } from "./batches.ts";

export function readAck(batch: Batch, seq: number, options: AckOptions): EndHanded {
  const labels = [...Object.keys(batch.outcomes), "error"];
  const { outcome = batch.ackedAs, result, error, by } = options;
  if (!labels.includes(outcome)) {
    throw new OptionInvalid(
      `${batch.kind} has no outcome ${JSON.stringify(outcome)}.`,
      `Give one of ${labels.join(", ")}.`,
    );
  }
  const record: ErrorRecord | undefined =
    outcome === "error"
      ? recordError({ name: "Rejected", message: error ?? "The owner could not use it." })
      : undefined;
  return {
    batchId: batch.id,
    seq,
    outcome,
    result: result === undefined ? undefined : toStorableJson("batches.ack() result", result),
    error: record,
    fingerprint: record && fingerprintOf(record),
    by: by ?? null,
  };
}
