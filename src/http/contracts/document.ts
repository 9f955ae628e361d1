// The OpenAPI document of all contracts, this one included. It says nothing about what the server holds.
import { z } from "zod";
import { contract } from "../contract.ts";

export const documentContracts = {
  openApi: contract({
    method: "GET",
    path: "/api/v1/openapi.json",
    access: "public",
    summary: "This document.",
    output: z.record(z.string(), z.unknown()),
    answers: { 200: "OpenAPI 3.1." },
  }),
};
