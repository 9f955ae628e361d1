// A route: a contract and what answers it, tied together so that the types of both fit.
import type { Contract, Incoming } from "../contracts.ts";

export interface Answer<Output> {
  /** 200 unless said otherwise. */
  status?: number;
  body: Output;
  headers?: Record<string, string>;
}

export interface Route {
  contract: Contract<unknown, unknown>;
  answer: (incoming: Incoming) => Promise<Answer<unknown>>;
}

export function route<Input, Output>(
  contract: Contract<Input, Output>,
  run: (input: Input) => Promise<Answer<Output>>,
): Route {
  return { contract, answer: async (incoming) => run(await contract.read(incoming)) };
}
