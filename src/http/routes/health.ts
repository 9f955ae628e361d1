// Is it alive, is it ready. Open to everybody, so they say little: whether the process answers, and whether the
// database does.
import type { Holdfast } from "../../client/client.ts";
import { type Health, healthContracts } from "../contracts/health.ts";
import { type Answer, route } from "./route.ts";

const ANSWER_WITHIN_MS = 3_000;
/** No job has it: the cheapest question that needs the tables. */
const NOBODY = "00000000-0000-0000-0000-000000000000";

export function makeHealthRoutes(hf: Holdfast, isStopping: () => boolean) {
  async function check(): Promise<Answer<Health>> {
    const databaseMs = await timeToAnswer(hf);
    const status = databaseMs === null ? "unavailable" : isStopping() ? "stopping" : "ok";
    const body: Health = { status, tier: hf.tier, databaseMs };
    return status === "ok" ? { body } : { status: 503, body, headers: { "retry-after": "2" } };
  }
  return {
    live: route(healthContracts.live, async () => ({ body: { status: "ok" } })),
    ready: route(healthContracts.ready, check),
    health: route(healthContracts.health, check),
  };
}

async function timeToAnswer(hf: Holdfast): Promise<number | null> {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<null>((resolve) => (timer = setTimeout(resolve, ANSWER_WITHIN_MS, null)));
  const answer = hf.jobs.get(NOBODY).then(
    () => Math.round(performance.now() - startedAt),
    () => null,
  );
  const ms = await Promise.race([answer, tooLate]);
  clearTimeout(timer);
  return ms;
}
