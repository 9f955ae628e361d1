// I1, I9: what people asked of dead jobs happened as often as they were told, not oftener than they asked, and not before.
import type { Check } from "../check.ts";
import type { AuditFact, JobFact } from "../facts.ts";
import type { Ask, Told } from "../told.ts";

export interface AboutAsked {
  byN: ReadonlyMap<number, JobFact[]>;
  audits: ReadonlyMap<string, AuditFact[]>;
  check: Check;
}

/** Two clocks of one machine. */
const CLOCKS_MS = 250;

const DONE = { retry: "dead>pending", discard: "dead>gone" } as const;

export const notRefused = (asks: readonly Ask[] = []): Ask[] => asks.filter(({ is }) => is !== "failed");

/** True: they may be what these people asked for, one each, in order. `from`: when, in milliseconds of the history. */
export function wereAsked(asks: readonly Ask[], from: readonly number[]): boolean {
  const sorted = asks.map(({ at }) => at).toSorted((a, b) => a - b);
  return from.every((at, index) => index < sorted.length && at >= sorted[index]! - CLOCKS_MS);
}

export function judgeAsked({ people, acked, epoch }: Told, { byN, audits, check }: AboutAsked): void {
  for (const verb of ["retry", "discard"] as const) {
    for (const [n, asks] of people[verb]) {
      const id = byN.get(n)?.[0]?.id ?? acked.get(n)?.ids[0] ?? "";
      const done = (audits.get(id) ?? []).filter(({ what }) => what === DONE[verb]);
      // In a simulation time is not the database's: how often is known there, and not when.
      const times = done.flatMap(({ at }) => (typeof at === "number" ? [at - epoch] : []));
      const mayBe = notRefused(asks);
      const were = `${verb} of job ${n}: it happened ${done.length} times`;
      check("I9", done.length <= mayBe.length, () => `${were}, and was asked ${mayBe.length} times`);
      check("I9", wereAsked(mayBe, times), () => `${were}, before it was asked`);
      const told = asks.filter(({ is }) => is === "ok").length;
      check("I1", done.length >= told, () => `${were}, and was acknowledged ${told} times`);
    }
  }
}
