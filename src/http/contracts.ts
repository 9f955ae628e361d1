// Every route of the API. The handler registers exactly these, docs/http.md and the OpenAPI document list exactly these
// (tests compare), and the CLI takes its types from here. A new route file adds its contracts here.
import { actionContracts } from "./contracts/actions.ts";
import { appContracts } from "./contracts/apps.ts";
import { auditContracts } from "./contracts/audit.ts";
import { batchChangeContracts } from "./contracts/batch-changes.ts";
import { batchContracts } from "./contracts/batches.ts";
import { doctorContracts } from "./contracts/doctor.ts";
import { documentContracts } from "./contracts/document.ts";
import { errorContracts } from "./contracts/errors.ts";
import { eventContracts } from "./contracts/events.ts";
import { healthContracts } from "./contracts/health.ts";
import { janitorContracts } from "./contracts/janitor.ts";
import { inboxContracts } from "./contracts/inbox.ts";
import { jobContracts } from "./contracts/jobs.ts";
import { queueContracts } from "./contracts/queues.ts";
import { systemContracts } from "./contracts/system.ts";
import { tokenContracts } from "./contracts/tokens.ts";
import { viewContracts } from "./contracts/views.ts";
import { workerContracts } from "./contracts/workers.ts";

/** Every route of the API: method, path, role, input and output. */
export const CONTRACTS = {
  ...jobContracts,
  // Before /batches/:id, whose id would be "changes".
  ...batchChangeContracts,
  ...batchContracts,
  ...actionContracts,
  ...errorContracts,
  ...inboxContracts,
  ...queueContracts,
  ...systemContracts,
  ...workerContracts,
  ...janitorContracts,
  ...doctorContracts,
  ...appContracts,
  ...eventContracts,
  ...tokenContracts,
  ...viewContracts,
  ...auditContracts,
  ...documentContracts,
  ...healthContracts,
};

/** The type of all contracts, for clients that are made from them. */
export type Contracts = typeof CONTRACTS;
