// What a route promises: where it is, who may call it, what goes in, what comes out. Everything else follows from it:
// the handler registers it, its input is checked against it, its types are inferred from it, the OpenAPI document and
// the table in docs/http.md list it.
import { z } from "zod";
import type { Role } from "../shared/roles.ts";

/** Bytes in a body: the route reads `context.request` itself, as a stream, with streamBody(). */
export interface Bytes {
  readonly bytes: readonly string[];
}

/** JSON that the contract checks, or lines of JSON that the route reads itself as a stream: then its `body` is null. */
export interface JsonOrLines<S extends z.ZodType = z.ZodType> extends Bytes {
  readonly json: S;
}

/** Something else than JSON in an answer: the route returns a Response. */
export interface Media {
  readonly media: string;
}

export const bytes = (...types: string[]): Bytes => ({ bytes: types });
export const jsonOrLines = <S extends z.ZodType>(json: S): JsonOrLines<S> => ({
  ...bytes(JSON_TYPE, LINES_TYPE),
  json,
});
export const media = (type: string): Media => ({ media: type });

const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

export type Fields = z.ZodObject;
const NOTHING = z.strictObject({});

/** What a route promises. */
export interface Contract<
  Params extends Fields = Fields,
  Query extends Fields = Fields,
  Body extends z.ZodType | Bytes | null = z.ZodType | Bytes | null,
  Output extends z.ZodType | Media = z.ZodType | Media,
> {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: `/${string}`;
  /** `public`: nobody is asked who they are. Otherwise the least role. */
  access: "public" | Role;
  /**
   * Whether a token that is bound to a recipient or an owner gets in. `recipient`: if it is for the `:recipient` of the
   * path. `owner`: always, and the route looks only at what is the owner's (`context.caller.owner`).
   */
  scope: "recipient" | "owner" | null;
  /** Whether each call is written to the audit log: what people do, not what programs do all day. Default: not for GET. */
  audited: boolean;
  /** One sentence. */
  summary: string;
  params: Params;
  query: Query;
  /** null: there is none, and one that is sent is not read. */
  body: Body;
  output: Output;
  /** The status of success, first the usual one, with what each means. */
  answers: Readonly<Record<number, string>>;
}

type Given<P extends Fields, Q extends Fields, B extends z.ZodType | Bytes | null, O extends z.ZodType | Media> = Pick<
  Contract<P, Q, B, O>,
  "method" | "path" | "access" | "summary" | "output" | "answers"
> &
  Partial<Pick<Contract<P, Q, B, O>, "scope" | "audited" | "params" | "query" | "body">>;

export function contract<
  O extends z.ZodType | Media,
  P extends Fields = typeof NOTHING,
  Q extends Fields = typeof NOTHING,
  B extends z.ZodType | Bytes | null = null,
>(given: Given<P, Q, B, O>): Contract<P, Q, B, O> {
  const rest = { scope: null, audited: given.method !== "GET", params: NOTHING, query: NOTHING, body: null, ...given };
  return rest as unknown as Contract<P, Q, B, O>;
}

export type AnyContract = Contract;

/** What the route of a contract is given. */
export interface InputOf<C extends AnyContract> {
  params: z.output<C["params"]>;
  query: z.output<C["query"]>;
  body: C["body"] extends z.ZodType
    ? z.output<C["body"]>
    : C["body"] extends JsonOrLines<infer S>
      ? z.output<S> | null
      : null;
}

/** What a caller sends. */
export type BodyOf<C extends AnyContract> = C["body"] extends z.ZodType
  ? z.input<C["body"]>
  : C["body"] extends JsonOrLines<infer S>
    ? z.input<S>
    : never;

/** What the route of a contract answers. */
export type OutputOf<C extends AnyContract> = C["output"] extends z.ZodType ? z.output<C["output"]> : never;

export const isBytes = (body: AnyContract["body"]): body is Bytes => body !== null && "bytes" in body;
/** Whether the JSON of its body is checked here, whatever else it may be. */
export const hasJson = (body: AnyContract["body"]): body is JsonOrLines => isBytes(body) && "json" in body;
export const isMedia = (output: AnyContract["output"]): output is Media => "media" in output;
