// hf.doctor(): whether all is well, check by check, with what to do where it is not. A check that cannot be made is a
// warning, and keeps no other from being made.
import type { Db } from "../../db/db.ts";
import type { Inboxes } from "../../inbox/inbox.ts";
import type { Janitor } from "../../janitor/janitor.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import type { Store } from "../../store/sql.ts";
import type { Queues } from "../queues.ts";
import { checkListen } from "./check-listen.ts";
import { checkHistory, checkRights, checkSchema } from "./check-schema.ts";
import { checkClock, checkServer, checkTables } from "./check-server.ts";
import { checkCrashes, checkInboxes, checkJanitor, checkKinds, checkQueues, checkWorkers } from "./check-work.ts";
import { type Finding, ok, warning } from "./finding.ts";

export interface DoctorInput {
  db: Db;
  store: Store;
  poolSize: number;
  queues: Queues;
  inboxes: Inboxes;
  janitor: Janitor;
  /** A kind as this client runs it. */
  asRun(kind: AnyJobKind): AnyJobKind;
}

/** `kinds`: those whose settings should be looked at. */
export type Doctor = (kinds?: readonly AnyJobKind[]) => Promise<Finding[]>;

type Check = () => Finding[] | Promise<Finding[]>;

export function makeDoctor({ db, store, poolSize, queues, inboxes, janitor, asRun }: DoctorInput): Doctor {
  const ofTier: Record<string, Check> =
    db.tier === "embedded"
      ? { durability: () => [ok("durability", "embedded: survives the death of the process, not of the machine")] }
      : {
          version: () => checkServer(store, poolSize),
          clock: () => checkClock(store),
          notifications: () => checkListen(db),
          rights: () => checkRights(store),
          "dead-rows": () => checkTables(store),
        };
  return async (kinds = []) => {
    const checks: Record<string, Check> = {
      ...ofTier,
      schema: () => checkSchema(store),
      history: () => checkHistory(store),
      workers: () => checkWorkers(store),
      dead: () => checkQueues(queues),
      crashes: () => checkCrashes(store),
      janitor: () => checkJanitor(store, janitor.chores),
      inboxes: () => checkInboxes(inboxes),
      kinds: () => checkKinds(kinds.map(asRun)),
    };
    const found: Finding[] = [];
    for (const [name, check] of Object.entries(checks)) {
      try {
        found.push(...(await check()));
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        found.push(warning(name, `This could not be checked: ${why}`, "Mend that, or ask as a role that may look."));
      }
    }
    return found;
  };
}
