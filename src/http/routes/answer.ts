// What a route's handler is, by its contract: input in, status and body out.
import type { Contracts, InputOf, OutputOf } from "../contracts.ts";

export interface Answer<Output> {
  /** 200 unless said otherwise. */
  status?: number;
  body: Output;
  headers?: Record<string, string>;
}

export type Route<Name extends keyof Contracts> = (
  input: InputOf<Contracts[Name]>,
) => Promise<Answer<OutputOf<Contracts[Name]>>>;

export type Routes<Names extends keyof Contracts = keyof Contracts> = { [Name in Names]: Route<Name> };
