// A route: a contract and what answers it, tied together so that the types of both fit.
import type { z } from "zod";
import type { Caller } from "../../shared/caller.ts";
import type { AnyContract, Bytes, Contract, Fields, InputOf } from "../contract.ts";

export interface Answer<Output> {
  /** 200 unless said otherwise. */
  status?: number;
  body: Output;
  headers?: Record<string, string>;
}

export interface RouteContext {
  caller: Caller;
  /** For routes with bytes in their body, a Range, a stream that ends with the request's signal. */
  request: Request;
}

export interface Route {
  contract: AnyContract;
  /** The input was read by the contract. */
  answer: (input: InputOf<AnyContract>, context: RouteContext) => Promise<Answer<unknown> | Response>;
}

export function route<P extends Fields, Q extends Fields, B extends z.ZodType | Bytes | null, Output>(
  contract: Contract<P, Q, B, z.ZodType<Output>>,
  run: (input: InputOf<Contract<P, Q, B>>, context: RouteContext) => Promise<Answer<Output>>,
): Route {
  // The handler hands over what this very contract read.
  return { contract, answer: (input, context) => run(input, context) };
}

/** For a contract whose output is not JSON. */
export function mediaRoute<C extends AnyContract>(
  contract: C,
  run: (input: InputOf<C>, context: RouteContext) => Promise<Response>,
): Route {
  return { contract, answer: (input, context) => run(input, context) };
}
