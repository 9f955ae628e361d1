// I12: a parcel that was acknowledged is there once and whole, and arrived; nothing else did.
import { type Check, groupBy } from "../check.ts";
import type { ParcelFact } from "../facts.ts";
import type { Told } from "../told.ts";

export function judgeParcels(told: Told, facts: readonly ParcelFact[], check: Check): void {
  const parcels = groupBy(facts, (parcel) => parcel.key);
  for (const [key, { sha256, isAcked }] of told.puts) {
    const found = parcels.get(key) ?? [];
    if (isAcked) check("I12", found.length > 0, () => `parcel ${key} was acknowledged and is lost`);
    if (isAcked) check("I12", told.arrived.has(key), () => `parcel ${key} was acknowledged and never arrived`);
    check("I12", found.length <= 1, () => `parcel ${key} is there ${found.length} times`);
    for (const parcel of found) {
      check("I12", parcel.sha256 === sha256, () => `parcel ${key} says that it is something else`);
      check("I12", parcel.contentSha256 === sha256, () => `parcel ${key} is not what was put`);
      check("I12", parcel.acked, () => `parcel ${key} was never acked`);
    }
  }
  for (const key of parcels.keys()) check("I12", told.puts.has(key), () => `parcel ${key} was never put`);
  for (const [key, hashes] of told.arrived) {
    const wanted = told.puts.get(key)?.sha256;
    for (const hash of hashes) check("I12", hash === wanted, () => `parcel ${key} arrived as something else`);
  }
}
