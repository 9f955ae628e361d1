// What a caller sees of payloads, results and notes. What a kind's `redact` names is seen by nobody over HTTP, but for an
// owner, who put it there; and whoever may not act does not see what looks like a secret.
import { isBatchKind } from "../job/define-batch.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import type { Caller } from "../shared/caller.ts";
import { hasRole } from "../shared/roles.ts";
import { isMasked, redact, redactText } from "./redact.ts";

export interface Eyes {
  /** A copy of the same shape, or the value itself. `kind` undefined: of any kind of batch. */
  see<T>(value: T, kind: string | undefined): T;
  /** The same for JSON text, with every digit of its numbers kept. `anywhere`: see Redaction. */
  seeText(json: string, kind: string | undefined, anywhere?: boolean): string;
  /** Whether what stands at this path of a payload is masked. `kind` undefined: of some kind. */
  hides(path: string, kind: string | undefined): boolean;
  /** Whether what is seen of an item depends on the kind of its batch. */
  readonly asksForKind: boolean;
}

export type MakeEyes = (caller: Pick<Caller, "role" | "owner">) => Eyes;

export function makeEyes(kinds: readonly AnyJobKind[]): MakeEyes {
  const byKind = new Map(kinds.map((kind) => [kind.kind, kind.redact]));
  const ofBatches = kinds.filter(isBatchKind).flatMap((kind) => kind.redact);
  return ({ role, owner }) => {
    const secrets = !hasRole(role, "operator");
    const pathsOf = (kind: string | undefined): readonly string[] =>
      owner !== null ? [] : kind === undefined ? ofBatches : (byKind.get(kind) ?? []);
    const isPlain = (kind: string | undefined): boolean => !secrets && pathsOf(kind).length === 0;
    return {
      see: <T>(value: T, kind: string | undefined): T =>
        isPlain(kind) ? value : (redact(value, { secrets, paths: pathsOf(kind) }) as T),
      seeText: (json, kind, anywhere = false) =>
        isPlain(kind) ? json : redactText(json, { secrets, paths: pathsOf(kind), anywhere }),
      hides: (path, kind) => {
        const paths = kind === undefined && owner === null ? kinds.flatMap(({ redact: all }) => all) : pathsOf(kind);
        return isMasked(path.split("."), { secrets, paths });
      },
      asksForKind: owner === null && ofBatches.length > 0,
    };
  };
}
