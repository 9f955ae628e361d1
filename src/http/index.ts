// The door "holdfast/http": re-exports only.
export { makeHandler, type Handler, type HandlerOptions } from "./handler.ts";
export { PortUnavailable } from "./port-unavailable.ts";
export { serve, toNodeHandler, type HttpServer, type ServeOptions } from "./serve.ts";
export { openApiDocument } from "./openapi.ts";
export { CONTRACTS, type Contracts } from "./contracts.ts";
export type { BodyOf, Contract, InputOf, OutputOf } from "./contract.ts";
export type { Authorize, GivenCaller } from "./callers.ts";
export type { Caller } from "../shared/caller.ts";
export { sendContent } from "./send-content.ts";
export type { ErrorBody } from "./errors.ts";
export type { JobPage, JobSummary, JobView, NewJobBody } from "./contracts/jobs.ts";
export type { Health } from "./contracts/health.ts";
