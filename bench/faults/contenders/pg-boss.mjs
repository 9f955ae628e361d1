// pg-boss 12.35.0.
// - https://pgboss.io/api/queues: retryLimit, retryDelay, heartbeatSeconds (at least 10; without it a dead worker's job is
//   found after expireInSeconds, 15 minutes by default), deleteAfterSeconds
// - https://pgboss.io/api/constructor: superviseIntervalSeconds, monitorIntervalSeconds, maintenanceIntervalSeconds
// - https://pgboss.io/api/ops: stop({ graceful, timeout })
// - https://pgboss.io/api/events: an "error" listener
import { createHash } from "node:crypto";
import { PgBoss } from "pg-boss";
import { ask } from "../../contenders/ask.mjs";

export const title = "pg-boss";
/** The shortest that it takes. */
export const leaseMs = 10_000;

const QUEUE = "work";

/** An id of one's own is the strongest key it has: it is refused as long as the row is there, in whichever state. */
function idOf(key) {
  const hex = createHash("sha256").update(key).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

async function start(url, keepMs) {
  const boss = new PgBoss({
    connectionString: url,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
    maintenanceIntervalSeconds: 1,
  });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  await boss.createQueue(QUEUE, {
    retryLimit: 2,
    retryDelay: 1,
    heartbeatSeconds: leaseMs / 1_000,
    ...(keepMs === undefined ? {} : { deleteAfterSeconds: Math.ceil(keepMs / 1_000) }),
  });
  return boss;
}

export async function openClient(url, { keepMs }) {
  const boss = await start(url, keepMs);
  return {
    async enqueue(payload, key) {
      const id = await boss.send(QUEUE, payload, key === undefined ? {} : { id: idOf(key) });
      return { id, created: id !== null, isOtherPayloadTold: false };
    },
    // Its own maintenance, which has just been told to run every second.
    purge: () => boss.supervise(QUEUE),
    close: () => boss.stop(),
  };
}

export async function openWorker(url, { concurrency, graceMs, keepMs }, handle) {
  const boss = await start(url, keepMs);
  const options = { batchSize: 1, localConcurrency: concurrency, pollingIntervalSeconds: 0.5 };
  await boss.work(QUEUE, options, ([job]) =>
    handle(job.data, { attempt: job.retryCount + 1, stalls: 0, signal: job.signal }),
  );
  process.once("SIGTERM", async () => {
    await boss.stop({ graceful: true, timeout: graceMs });
    process.exit(0);
  });
}

const STATES = { created: "waiting", retry: "waiting", active: "running", completed: "done", failed: "dead" };

export async function look(url) {
  const rows = await ask(
    url,
    "select (data ->> 'n')::int as n, state::text, output ->> 'by' as by from pgboss.job where name = $1",
    [QUEUE],
  );
  return rows.map((row) => ({ ...row, state: STATES[row.state] ?? row.state }));
}
