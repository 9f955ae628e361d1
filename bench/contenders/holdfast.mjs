// Holdfast, through its public door only; the counts at the end read its tables.
import { defineBatch, defineJob, open } from "../../dist/index.js";
import { ask } from "./ask.mjs";

const CONCURRENCY = { latency: 10, loaded: 50 };

export async function setup(url, tuning) {
  const hf = await open({ database: url });
  const work = { concurrency: CONCURRENCY[tuning] ?? 500 };
  let onJob = () => {};
  const kind = defineJob("bench.noop", {
    attempts: 5,
    async run(job) {
      onJob(job.payload);
    },
  });
  const batchKind = defineBatch("bench.items", { concurrency: 400, run: () => undefined });
  let worker;
  let queues = 0;
  let next = 0;
  return {
    settings: { work },
    enqueueMany: (payloads) =>
      hf.enqueueMany(
        kind,
        payloads.map((payload) => (queues === 0 ? { payload } : { payload, queue: `bench-${next++ % queues}` })),
      ),
    enqueueOne: (payload) => hf.enqueue(kind, payload),
    async startWorker(handler) {
      onJob = handler;
      worker = await hf.work([kind], work);
    },
    spreadOver(count) {
      queues = count;
    },
    /** The content as it comes out on the other side, acked when it has been read. */
    async passThroughInbox(content) {
      const inbox = hf.inbox("bench");
      const { id } = await inbox.put(content, { name: "big.bin" });
      const opened = await inbox.open(id);
      return (async function* () {
        yield* opened.stream();
        await inbox.ack(id);
      })();
    },
    fillHistory: (count) =>
      ask(
        url,
        `insert into holdfast.job_history (id, finished_at, created_at, run_at, started_at, purge_at, token, attempt,
           max_attempts, claim_count, rank, state, kind, queue, payload)
         select gen_random_uuid(), now(), now(), now(), now(), now() + interval '7 days', 1, 1, 5, 1, 0, 'done', 'bench.old',
           'default', jsonb_build_object('n', n, 'to', 'customer-' || n || '@example.com')
         from generate_series(1, $1::integer) n`,
        [count],
      ),
    /** Makes all of the filled history overdue, to be deleted row by row. */
    endRetention: () =>
      ask(
        url,
        `update holdfast.job_history set purge_at = now() - interval '1 second', purge_early = true where kind = 'bench.old'`,
        [],
      ),
    /** Until so many rows are gone: by us, or by the janitor's own runs meanwhile. */
    async purge(count) {
      for (let left = count; left > 0;) {
        const [result] = await hf.janitor.run("purge-finished");
        if (result.error) throw new Error(result.error);
        const done = result.ran ? (result.rows.done ?? 0) : 0;
        if (done > 0) left -= done;
        else
          [{ left }] = await ask(
            url,
            `select count(*)::int as left from holdfast.job_history where kind = 'bench.old'`,
          );
      }
    },
    /** Creates a batch from a stream and works it off. */
    async runBatch(items) {
      async function* stream() {
        for (let n = 1; n <= items; n++) yield { n, url: `https://articles.example/${n}` };
      }
      const began = performance.now();
      const { id } = await hf.batches.create(batchKind, stream());
      const created = performance.now();
      const ofBatch = await hf.work([batchKind], { concurrency: 400 });
      const { counts, completions } = await hf.batches.wait(id);
      const ended = performance.now();
      await ofBatch.stop();
      if (counts.done !== items || completions !== 1) throw new Error(`${items} items: ${JSON.stringify(counts)}`);
      return { createdPerSecond: (items / (created - began)) * 1000, perSecond: (items / (ended - created)) * 1000 };
    },
    async stop() {
      await worker?.stop();
      await hf.close();
    },
    async counts() {
      const [row] = await ask(
        url,
        `select (select count(*)::int from holdfast.jobs) as unfinished,
                (select count(*)::int from holdfast.job_history where state = 'done' and kind = 'bench.noop') as finished`,
      );
      return row;
    },
  };
}
