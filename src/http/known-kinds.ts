// The kinds that a server accepts, by name, or a refusal that says which there are.
import { KindUnknown } from "../errors.ts";
import { type AnyBatchKind, isBatchKind } from "../job/define-batch.ts";
import type { AnyJobKind } from "../job/define-job.ts";

export interface KnownKinds {
  job(kind: string): AnyJobKind;
  batch(kind: string): AnyBatchKind;
}

const SHOWN_KINDS = 50;

export function makeKnownKinds(kinds: readonly AnyJobKind[]): KnownKinds {
  const byName = new Map(kinds.map((kind) => [kind.kind, kind]));
  const batches = kinds.filter(isBatchKind).map(({ kind }) => kind);
  const jobs = kinds.filter((kind) => !isBatchKind(kind)).map(({ kind }) => kind);
  return {
    job(kind) {
      const known = byName.get(kind);
      if (known && !isBatchKind(known)) return known;
      const what = known ? `${shown(kind)} is a kind of batch, not of job.` : "";
      throw unknown(what || `This server does not know the kind ${shown(kind)}.`, "kinds", jobs);
    },
    batch(kind) {
      const known = byName.get(kind);
      if (known && isBatchKind(known)) return known;
      const what = known ? `${shown(kind)} is a kind of job, not of batch.` : "";
      throw unknown(what || `This server does not know the batch kind ${shown(kind)}.`, "batch kinds", batches);
    },
  };
}

const shown = (kind: string): string => JSON.stringify(kind.slice(0, 130));

function unknown(message: string, what: string, names: readonly string[]): KindUnknown {
  const more = names.length > SHOWN_KINDS ? ` and ${names.length - SHOWN_KINDS} more` : "";
  return new KindUnknown(
    message,
    names.length === 0
      ? "It knows none: list them in holdfast.config.ts."
      : `Known ${what}: ${names.slice(0, SHOWN_KINDS).join(", ")}${more}.`,
  );
}
