// How a route of this app is made: what is refused becomes its answer.
import type { AppRequest, AppRoute, Holdfast } from "holdfast";
import type { Desk } from "../app.ts";
import { Refused } from "../refused.ts";
import type { Catalog, SpecRow } from "../specs.ts";

export type DeskOf = (hf: Holdfast) => Desk;

export interface Asked extends Desk {
  request: AppRequest;
}

export interface RouteInput {
  method: AppRoute["method"];
  /** After /api-catalogs. */
  path: "" | `/${string}`;
  maxBody?: number;
  answer(asked: Asked): unknown;
}

export function makeRoute(deskOf: DeskOf, { method, path, maxBody, answer }: RouteInput): AppRoute {
  return {
    method,
    path: `/api-catalogs${path}`,
    auth: "token",
    ...(maxBody !== undefined && { maxBody }),
    async handle(request) {
      try {
        return await answer({ ...deskOf(request.hf), request });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        const { code, message, hint, status } = error;
        return Response.json({ error: { code, message, hint } }, { status });
      }
    },
  };
}

const CATALOG_FORM = /^[a-z0-9][a-z0-9-]{0,62}$/;

export function checkCatalogId(id: unknown): string {
  if (typeof id === "string" && CATALOG_FORM.test(id)) return id;
  throw new Refused(
    422,
    "ID_INVALID",
    `The catalog's id is ${JSON.stringify(id)?.slice(0, 100)}.`,
    "Use 1 to 63 lower-case letters, digits and -.",
  );
}

export function checkName(what: string, name: unknown): string {
  const text = typeof name === "string" ? name.trim() : "";
  // oxlint-disable-next-line no-control-regex -- these are what is refused
  const isForm = text !== "" && text.length <= 200 && !/[\u0000-\u001f/]/.test(text);
  // Dots alone would be taken for a way through the address.
  if (isForm && text !== "." && text !== "..") return text;
  throw new Refused(
    422,
    "NAME_INVALID",
    `The ${what}'s name is ${JSON.stringify(name)?.slice(0, 100)}.`,
    "Use 1 to 200 characters, without / and line breaks, and not dots alone.",
  );
}

export async function findCatalog({ specs, request }: Asked): Promise<Catalog> {
  const found = await specs.findCatalog(request.params["catalog"] ?? "");
  if (found) return found;
  throw new Refused(404, "UNKNOWN", "There is no such catalog.", "GET /api-catalogs lists them.");
}

export async function findSpec(asked: Asked): Promise<SpecRow> {
  const { catalog = "", spec = "" } = asked.request.params;
  const found = await asked.specs.find(catalog, spec);
  if (found) return found;
  throw new Refused(404, "SPEC_UNKNOWN", "There is no such spec.", "GET /api-catalogs/:catalog lists them.");
}

export async function bodyOf({ request }: Asked): Promise<Record<string, unknown>> {
  const body = await request.json();
  return body !== null && typeof body === "object" && !Array.isArray(body) ? (body as Record<string, unknown>) : {};
}

/** More than the most is the most. */
export function readLimit(given: string | null, usual: number, most: number): number {
  const limit = given === null ? usual : Number(given);
  if (Number.isInteger(limit) && limit >= 1) return Math.min(limit, most);
  throw new Refused(422, "LIMIT_INVALID", `The limit is ${JSON.stringify(given)}.`, `Give a number from 1 to ${most}.`);
}
