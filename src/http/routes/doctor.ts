// /api/v1/doctor.
import type { Holdfast } from "../../client/client.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import { doctorContracts } from "../contracts/doctor.ts";
import { route } from "./route.ts";

export function makeDoctorRoutes(hf: Holdfast, kinds: readonly AnyJobKind[]) {
  return {
    makeRepair: route(doctorContracts.makeRepair, async ({ body: { repair } }) => ({
      body: { repair, done: await hf.repair(repair) },
    })),
    examine: route(doctorContracts.examine, async () => ({ body: { findings: await hf.doctor(kinds) } })),
  };
}
