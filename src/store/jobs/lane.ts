// How a lane (a kind and a rank) is found in the claim index, which has the hash of the kind and not the kind itself:
// migrations/018_claims_by_hash.sql.

export const KIND_HASH = (kind: string): string => `hashtext(${kind})`;

/** Of jobs `j`: in the index by its hash, and surely by its name. */
export const IS_KIND = (kind: string): string => `${KIND_HASH("j.kind")} = ${KIND_HASH(kind)} and j.kind = ${kind}`;
