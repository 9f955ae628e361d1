// A worker's outcomes are written together; a row that somebody has locked holds up nobody else, and never loses the
// lease of its run. Real locks against a real worker.
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineJob, type Holdfast, open } from "#src/index.js";
import { type Session } from "../support/locks.ts";
import { makeGate } from "../support/make.ts";
import { type Arena, openArena, SCHEMA } from "./arena.ts";

let arena: Arena;
let other: Session;
let hf: Holdfast;
beforeAll(async () => {
  arena = await openArena();
  other = await arena.session();
  hf = await open({ database: arena.url, schema: SCHEMA });
});
afterAll(async () => {
  await hf.close();
  await arena.close();
});

async function until(what: string, ask: () => Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await ask())) if (Date.now() > end) throw new Error(`Not within ${timeoutMs} ms: ${what}`);
}

const states = async (kind: string): Promise<{ running: number; done: number }> => {
  const { rows } = await arena.watcher.query<{ running: number; done: number }>(
    `select (select count(*) from ${SCHEMA}.jobs where kind = $1 and state = 'running')::integer as running,
       (select count(*) from ${SCHEMA}.job_history where kind = $1 and state = 'done')::integer as done`,
    [kind],
  );
  return rows[0]!;
};

const cases = {
  "without results": () => undefined,
  "with results": (n: number) => ({ n }),
  // Two statements under one lease.
  "with one result among them": (n: number) => (n === 0 ? { n } : undefined),
};

for (const [name, result] of Object.entries(cases)) {
  test(`of fifty runs ${name} that end together, forty-nine are settled while one row is locked`, async () => {
    const gate = makeGate();
    const kind = defineJob(`batch.${Object.keys(cases).indexOf(name)}`, {
      lease: "2s",
      async run(job) {
        await gate.opened;
        return result(job.payload as number);
      },
    });
    const rows = Array.from({ length: 50 }, (_, payload) => ({ payload }));
    const [locked] = await hf.enqueueMany(kind, rows);
    const worker = await hf.work([kind], { concurrency: 50 });
    await until("all run", async () => (await states(kind.kind)).running === 50);
    await other.begin();
    await other.query(`select 1 from ${SCHEMA}.jobs where id = $1 for update`, [locked!.id]);
    gate.open();
    await until("the others are done", async () => (await states(kind.kind)).done === 49, 5_000);
    // The last one still runs, and whoever asks can see that: if this process died now, it would be recovered.
    const { rows: leases } = await arena.watcher.query(
      `select 1 from ${SCHEMA}.leases l join ${SCHEMA}.jobs j on j.token = l.token
       where j.id = $1 and j.state = 'running' and j.id = any(l.job_ids)`,
      [locked!.id],
    );
    expect(leases).toHaveLength(1);
    await arena.sound();
    // Longer than a lease: it is kept as long as the outcome is not written.
    await other.query("select pg_sleep(3)");
    expect(await arena.live(locked!.id)).toMatchObject({ state: "running", attempt: 1 });
    await other.commit();
    await until("the last one is done", async () => (await states(kind.kind)).done === 50);
    await worker.stop();
    expect(await arena.leases()).toEqual([]);
  });
}
