// I10: batches are counted, end once, and say so once; every item is saved, and is charged for what its handler did.
import { type Check, groupBy } from "../check.ts";
import type { BatchFact } from "../facts.ts";
import type { Told } from "../told.ts";

/** An item is given up when it has failed four times, once of which its payload may ask for. */
const TROUBLES_OF_A_DEATH = 3;

export function judgeBatches(told: Told, facts: readonly BatchFact[], check: Check): void {
  const batches = groupBy(facts, (batch) => batch.key);
  for (const [key, { items, fails, isAcked }] of told.batches) {
    const found = batches.get(key) ?? [];
    if (isAcked) check("I10", found.length > 0, () => `batch ${key} was acknowledged and is lost`);
    check("I10", found.length <= 1, () => `batch ${key} is there ${found.length} times`);
    for (const { total, saved, charged, troubled } of found) {
      check("I10", total === items, () => `batch ${key} has ${total} of ${items} items`);
      const excused = Math.floor(troubled / TROUBLES_OF_A_DEATH);
      check("I10", saved <= total && saved >= total - excused, () => `batch ${key} saved ${saved} of ${total} items`);
      const isAsDue = charged - troubled <= fails && charged >= fails;
      check(
        "I8",
        isAsDue,
        () => `batch ${key} was charged ${charged} attempts (${troubled} excused) instead of ${fails}`,
      );
    }
  }
  for (const batch of facts) {
    check("I10", told.batches.has(batch.key!), () => `batch ${batch.id} was never asked for`);
    check("I10", batch.state === "done", () => `batch ${batch.id} is ${batch.state}`);
    check("I10", batch.ended === batch.total, () => `batch ${batch.id}: ${batch.ended} of ${batch.total} counted`);
    check("I10", batch.outcomes === batch.total, () => `batch ${batch.id}: ${batch.outcomes} of ${batch.total} ended`);
    check("I10", batch.completions === 1, () => `batch ${batch.id} was completed ${batch.completions} times`);
    check("I10", batch.follow === 1, () => `batch ${batch.id} was followed by ${batch.follow} jobs`);
    check("I10", batch.doubles === 0, () => `batch ${batch.id}: ${batch.doubles} effects twice`);
    check(
      "I10",
      batch.unmatched === 0,
      () => `batch ${batch.id}: ${batch.unmatched} items or effects without the other`,
    );
  }
}
