// A filter must not tell what the screen does not: whoever may ask for jobs whose password is "a…" finds it out by asking
// often enough.
import type { Eyes } from "./eyes.ts";
import { forbidden } from "./own.ts";

interface Filter {
  kind?: string | null | undefined;
  payload?: Readonly<Record<string, unknown>> | null | undefined;
}

/** Throws if a filter names something in the payload that this caller does not see. */
export function refuseHidden({ kind, payload }: Filter, eyes: Eyes): void {
  for (const path of Object.keys(payload ?? {})) {
    if (!eyes.hides(path, kind ?? undefined)) continue;
    const isOfSome = kind === undefined || kind === null;
    throw forbidden(
      `payload.${path.slice(0, 200)} is masked${isOfSome ? "" : ` in jobs of the kind ${kind.slice(0, 130)}`}, so jobs cannot be found by it.`,
      isOfSome
        ? "Leave it out of the filter, or give a kind in which it is not masked."
        : "Leave it out of the filter.",
    );
  }
}
