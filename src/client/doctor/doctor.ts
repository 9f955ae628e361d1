// hf.doctor(): whether all is well, check by check, with what to do where it is not: the server, the schema, the settings of
// kinds, and the rules about the work that hf.problems() goes by too. A check that cannot be made is a warning, and keeps
// no other from being made.
import type { Db } from "../../db/db.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import type { Store } from "../../store/sql.ts";
import { makeRules, type Problem, type RulesInput } from "../rules.ts";
import { checkKinds } from "./check-kinds.ts";
import { checkListen } from "./check-listen.ts";
import { checkHistory, checkRights, checkSchema } from "./check-schema.ts";
import { checkClock, checkServer, checkTables } from "./check-server.ts";
import { type Finding, ok, problem, type Repair, warning } from "./finding.ts";
import { repairs } from "./repairs.ts";

export interface DoctorInput {
  db: Db;
  store: Store;
  poolSize: number;
  rules: RulesInput;
  /** A kind as this client runs it. */
  asRun(kind: AnyJobKind): AnyJobKind;
}

/** `hf.doctor(kinds)`: whether all is well, check by check. `kinds`: those whose settings should be looked at. */
export type Doctor = (kinds?: readonly AnyJobKind[]) => Promise<Finding[]>;

type Check = () => Finding[] | Promise<Finding[]>;

export function makeDoctor({ db, store, poolSize, rules, asRun }: DoctorInput): Doctor {
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
      ...Object.fromEntries(makeRules(rules).map(({ check, well, find }) => [check, askRule(check, well, find)])),
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

/** Chores run by themselves as soon as somebody keeps the house: to run them now harms nobody. */
function repairOf(code: Problem["code"], about: string | null): Repair | null {
  if (code === "chore-failing" && about !== null) return repairs.runChore(about);
  return code === "chores-late" ? repairs.runChores() : null;
}

function askRule(check: string, well: string, find: () => Promise<Problem[]>): Check {
  return async () => {
    const found = (await find()).map(({ code, about, level, message, hint, command }) =>
      (level === "problem" ? problem : warning)(
        check,
        `${message[0]!.toUpperCase()}${message.slice(1)}.`,
        command === null ? hint : `${hint} ${command}`,
        repairOf(code, about),
      ),
    );
    return found.length > 0 ? found : [ok(check, well)];
  };
}
