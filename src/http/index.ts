// The door "holdfast/http": re-exports only.
export { makeHandler, type Handler, type HandlerOptions } from "./handler.ts";
export { PortUnavailable } from "./port-unavailable.ts";
export { serve, toNodeHandler, type HttpServer, type ServeOptions } from "./serve.ts";
export { CONTRACTS, type Contracts, type Health, type JobPage, type OutputOf } from "./contracts.ts";
export type { ErrorBody } from "./errors.ts";
export type { JobSummary, JobView } from "./job-view.ts";
export type { NewJobBody } from "./new-job.ts";
