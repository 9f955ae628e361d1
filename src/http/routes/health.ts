// Is it alive, is it ready, is it well; and the figures for Prometheus.
import type { Holdfast } from "../../client/client.ts";
import { type Health, healthContracts, type WholeHealth } from "../contracts/health.ts";
import { type Answer, mediaRoute, route } from "./route.ts";

const ANSWER_WITHIN_MS = 3_000;
/** No job has it: the cheapest question that needs the tables. */
const NOBODY = "00000000-0000-0000-0000-000000000000";
const RETRY = { "retry-after": "2" };

export function makeHealthRoutes(hf: Holdfast, isStopping: () => boolean) {
  // Counting begins now: what happened before somebody scrapes counts too.
  const { metrics } = hf;

  async function ready(): Promise<Health> {
    const databaseMs = await timeToAnswer(hf);
    const status = databaseMs === null ? "unavailable" : isStopping() ? "stopping" : "ok";
    return { status, tier: hf.tier, databaseMs };
  }

  async function whole(): Promise<WholeHealth> {
    const [base, check] = await Promise.all([ready(), within(hf.health.check().catch(() => null))]);
    const { health, stalledQueues, failingChores } = check ?? UNKNOWN;
    return {
      ...base,
      health: base.databaseMs === null ? "unknown" : health,
      stalledQueues: [...stalledQueues],
      // Their errors may hold what only the log should.
      failingChores: failingChores.map(({ chore }) => chore),
      stoppedLoops: hf.health.live().stopped,
    };
  }

  return {
    live: route(healthContracts.live, async () => {
      const { isAlive, stopped } = hf.health.live();
      if (isAlive) return { body: { status: "ok", stoppedLoops: [] } };
      return { status: 503, body: { status: "stopped", stoppedLoops: stopped } };
    }),
    ready: route(healthContracts.ready, async () => answer(await ready(), true)),
    health: route(healthContracts.health, async () => {
      const body = await whole();
      return answer(body, body.health !== "degraded");
    }),
    metrics: mediaRoute(
      healthContracts.metrics,
      async () => new Response(await metrics.text(), { headers: { "content-type": metrics.contentType } }),
    ),
  };
}

const UNKNOWN = { health: "unknown", stalledQueues: [], failingChores: [] } as const;

function answer<Body extends Health>(body: Body, isWell: boolean): Answer<Body> {
  return body.status === "ok" && isWell ? { body } : { status: 503, body, headers: RETRY };
}

async function timeToAnswer(hf: Holdfast): Promise<number | null> {
  const startedAt = performance.now();
  const asked = hf.jobs.get(NOBODY).then(
    () => Math.round(performance.now() - startedAt),
    () => null,
  );
  return await within(asked);
}

/** null: not in time. */
async function within<T>(asked: Promise<T | null>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<null>((resolve) => (timer = setTimeout(resolve, ANSWER_WITHIN_MS, null)));
  const answered = await Promise.race([asked, tooLate]);
  clearTimeout(timer);
  return answered;
}
