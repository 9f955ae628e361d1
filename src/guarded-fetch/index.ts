// The door "holdfast/guarded-fetch": re-exports only.
export { makeGuardedFetch, type GuardedFetch, type GuardedRequest } from "./guarded-fetch.ts";
export type { GuardedAnswer } from "./answer.ts";
export { isPublicAddress } from "./address.ts";
export type { GuardedFetchOptions } from "./options.ts";
export { FetchFailed, FetchRefused } from "../errors.ts";
