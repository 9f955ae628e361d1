// What was acknowledged is on the disk: PostgreSQL crashes right after each sort of acknowledgement, and it is there. The server
// writes its log in the background so seldom that whatever a commit did not wait for is lost, which is shown first.
//
// Claims and beats do not wait: that a crash forgets them costs nobody anything.
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineBatch, type Holdfast, type JobContext, open } from "#src/index.js";
import { times } from "../support/events.ts";
import { makeGate, makeKind } from "../support/make.ts";
import { startPostgres } from "../support/postgres-server.mjs";

const SETTINGS = { wal_writer_delay: "10s", autovacuum: "off", checkpoint_timeout: "1h", bgwriter_delay: "10s" };

let server: Awaited<ReturnType<typeof startPostgres>>;
let hf: Holdfast;

beforeAll(async () => {
  server = await startPostgres({ settings: SETTINGS });
  hf = await open({ database: server.url(), callTimeout: "5s" });
});
afterAll(async () => {
  await hf.close();
  await server.remove();
});

async function crash(): Promise<void> {
  await server.stop("immediate");
  await server.start();
}

async function ask<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new Client(server.url());
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

test("a commit that did not wait is lost", async () => {
  await ask("create table lost (n integer)");
  await ask("begin; set local synchronous_commit = off; insert into lost values (1); commit");
  await crash();
  expect(await ask("select n from lost")).toEqual([]);
});

/** A job whose handler has done one thing and waits, for as long as the crash takes. */
async function during(does: (job: JobContext) => Promise<unknown>) {
  const done = makeGate();
  const over = makeGate();
  const kind = makeKind({
    async run(job) {
      if (job.attempt > 1) return;
      await does(job);
      done.open();
      await over.opened;
    },
  });
  const worker = await hf.work([kind], { grace: "0s", abortGrace: "100ms" });
  const { id } = await hf.enqueue(kind, 1);
  await done.opened;
  return {
    id,
    async end() {
      over.open();
      await worker.stop();
    },
  };
}

const noteOf = async (id: string): Promise<unknown[]> =>
  (
    await ask<{ value: unknown }>("select value -> 'value' as value from holdfast.job_notes where job_id = $1", [id])
  ).map(({ value }) => value);

/** Each does something, and once that is acknowledged gives what to look at after the crash. */
const ACKNOWLEDGED: [what: string, act: () => Promise<() => Promise<void>>][] = [
  [
    "an enqueue",
    async () => {
      const { id } = await hf.enqueue(makeKind(), 1);
      return async () => expect(await hf.jobs.get(id)).toMatchObject({ state: "pending" });
    },
  ],
  [
    "an enqueue with a key",
    async () => {
      const kind = makeKind();
      const { id } = await hf.enqueue(kind, 1, { key: "kept", group: "kept" });
      return async () => expect(await hf.enqueue(kind, 1, { key: "kept" })).toMatchObject({ id, created: false });
    },
  ],
  [
    "very many at once",
    async () => {
      const kind = makeKind();
      await hf.enqueueMany(
        kind,
        Array.from({ length: 300 }, (_, payload) => ({ payload })),
      );
      return async () => expect((await hf.jobs.list({ kind: kind.kind, limit: 500 })).jobs).toHaveLength(300);
    },
  ],
  [
    "an enqueue for a worker that waits",
    async () => {
      const gate = makeGate();
      const kind = makeKind({ run: () => gate.opened });
      const worker = await hf.work([kind], { grace: "0s", abortGrace: "100ms" });
      const { id } = await hf.enqueue(kind, 1);
      return async () => {
        expect(await hf.jobs.get(id)).toMatchObject({ id });
        gate.open();
        await worker.stop();
      };
    },
  ],
  [
    "what a job came to",
    async () => {
      const kind = makeKind({ run: () => "result" });
      const worker = await hf.work([kind]);
      const { id } = await hf.enqueue(kind, 1);
      await hf.jobs.wait(id);
      return async () => {
        expect(await hf.jobs.get(id)).toMatchObject({ state: "done", result: "result" });
        await worker.stop();
      };
    },
  ],
  [
    "what very many came to",
    async () => {
      const kind = makeKind();
      await hf.enqueueMany(
        kind,
        Array.from({ length: 600 }, (_, payload) => ({ payload })),
      );
      const done = times(hf, "job.done", 600, (event) => event.kind === kind.kind);
      const worker = await hf.work([kind], { concurrency: 300 });
      await done;
      return async () => {
        expect(await ask("select count(*)::int as n from holdfast.job_history where kind = $1", [kind.kind])).toEqual([
          { n: 600 },
        ]);
        await worker.stop();
      };
    },
  ],
  [
    "a failed attempt",
    async () => {
      const kind = makeKind({ backoff: ["1h"], run: () => Promise.reject(new Error("no")) });
      const retrying = times(hf, "job.retrying", 1, (event) => event.kind === kind.kind);
      const worker = await hf.work([kind]);
      const { id } = await hf.enqueue(kind, 1);
      await retrying;
      return async () => {
        expect(await hf.jobs.get(id)).toMatchObject({ state: "pending", attempt: 1, lastError: { message: "no" } });
        await worker.stop();
      };
    },
  ],
  [
    "a step",
    async () => {
      const { id, end } = await during((job) => job.step("pay", () => Promise.resolve("paid")));
      return async () => {
        expect(await noteOf(id)).toEqual(["paid"]);
        await end();
      };
    },
  ],
  [
    "a checkpoint",
    async () => {
      const { id, end } = await during((job) => job.checkpoint({ at: 7 }));
      return async () => {
        expect(await noteOf(id)).toEqual([{ at: 7 }]);
        await end();
      };
    },
  ],
  [
    "a chunk",
    async () => {
      await ask("create table kept (n integer)");
      const { end } = await during(async (job) => {
        for await (const chunk of job.chunks("parts", [1, 2, 3], { size: 3 })) {
          await chunk.save(async (tx) => {
            await tx.query("insert into kept select unnest($1::integer[])", [chunk.items]);
          });
        }
      });
      return async () => {
        expect(await ask("select n from kept order by n")).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
        await end();
      };
    },
  ],
  [
    "a cancel",
    async () => {
      const { id } = await hf.enqueue(makeKind(), 1);
      await hf.jobs.cancel(id);
      return async () => expect(await hf.jobs.get(id)).toMatchObject({ state: "cancelled" });
    },
  ],
  [
    "a parcel",
    async () => {
      const { id } = await hf.inbox("put").put(Buffer.alloc(600_000, "x"), { name: "big" });
      return async () => {
        const content = await hf.inbox("put").open(id);
        expect((await content.bytes()).length).toBe(600_000);
      };
    },
  ],
  [
    "an ack",
    async () => {
      const { id } = await hf.inbox("ack").put(Buffer.from("x"), { name: "small" });
      await hf.inbox("ack").ack(id);
      return async () => expect((await hf.inbox("ack").list()).parcels).toMatchObject([{ state: "acked" }]);
    },
  ],
  [
    "a batch, and what its items came to",
    async () => {
      const kind = defineBatch<number, number, "saved">(makeKind().kind, {
        outcomes: { saved: {} },
        run: () => "saved",
      });
      const { id } = await hf.batches.create(
        kind,
        Array.from({ length: 50 }, (_, n) => n),
      );
      const worker = await hf.work([kind]);
      await hf.batches.wait(id);
      return async () => {
        expect(await hf.batches.get(id)).toMatchObject({ state: "done", counts: { saved: 50 } });
        await worker.stop();
      };
    },
  ],
];

test.each(ACKNOWLEDGED)("%s that was acknowledged survives a crash of PostgreSQL", async (_, act) => {
  const look = await act();
  await crash();
  await look();
});
