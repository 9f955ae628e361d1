// The routes that the dashboard calls. test/dashboard compares them with the contracts.
import type { Contracts } from "#src/http/contracts.js";

export const ROUTES = {
  readMe: "GET /api/v1/me",
  readOverview: "GET /api/v1/overview",
  readSystem: "GET /api/v1/system",
  listQueues: "GET /api/v1/queues",
  pauseQueue: "POST /api/v1/queues/:queue/pause",
  resumeQueue: "POST /api/v1/queues/:queue/resume",
  readStats: "GET /api/v1/stats",
  readLatency: "GET /api/v1/stats/latency",
  readKindStats: "GET /api/v1/stats/kinds",
  listJobs: "GET /api/v1/jobs",
  countJobs: "GET /api/v1/jobs/count",
  readJob: "GET /api/v1/jobs/:id",
  enqueueJob: "POST /api/v1/jobs",
  cancelJob: "POST /api/v1/jobs/:id/cancel",
  retryJob: "POST /api/v1/jobs/:id/retry",
  discardJob: "POST /api/v1/jobs/:id/discard",
  listKinds: "GET /api/v1/kinds",
  startAction: "POST /api/v1/actions",
  listActions: "GET /api/v1/actions",
  readAction: "GET /api/v1/actions/:id",
  cancelAction: "POST /api/v1/actions/:id/cancel",
  listErrorGroups: "GET /api/v1/errors",
  listDead: "GET /api/v1/dead",
  listWorkers: "GET /api/v1/workers",
  listInboxes: "GET /api/v1/inbox",
  listParcels: "GET /api/v1/inbox/:recipient/parcels",
  listChores: "GET /api/v1/janitor",
  choreHistory: "GET /api/v1/janitor/history",
  previewChores: "GET /api/v1/janitor/preview",
  runChores: "POST /api/v1/janitor/run",
  listAudit: "GET /api/v1/audit",
  listApps: "GET /api/v1/apps",
} as const satisfies Partial<Record<keyof Contracts, string>>;

export type RouteName = keyof typeof ROUTES;
