// What an item costs must not depend on the size of its batch: a small and a huge batch with the same settings, one after
// the other in one run, and again the small one, so that a machine that gets slower is not taken for a batch that does. The
// huge one comes from a stream, in a process of its own whose memory is watched.
//
//   node test/load/batches.mjs [items] [postgres-url]
//
// Ends with exit code 1 if the huge batch does less than 80 % of the small one's items per second, if a counter is wrong, or if
// the creating process grew by more than 64 MB. Not part of npm test: it takes minutes and measures time.
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { defineBatch, open } from "../../dist/index.js";
import { startPostgres } from "../support/postgres-server.mjs";

const SMALL = 10_000;
const MEMORY_MB = 64;
const kind = defineBatch("load.batch", { concurrency: 400, run: () => undefined });
const say = (text) => process.stdout.write(`${text}\n`);

if (process.send) {
  // The creating process.
  const [, , items, url] = process.argv;
  const hf = await open({ database: url });
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let most = before;
  async function* stream() {
    for (let n = 1; n <= Number(items); n += 1) {
      if (n % 5_000 === 0) most = Math.max(most, process.memoryUsage().rss);
      yield { n, url: `https://articles.example/${n}` };
    }
  }
  const began = performance.now();
  const { id } = await hf.batches.create(kind, stream());
  process.send({ id, grewMb: (most - before) / 1_048_576, seconds: (performance.now() - began) / 1_000 });
  await hf.close();
  process.disconnect();
} else {
  const HUGE = Number(process.argv[2] ?? 1_000_000);
  const server = process.argv[3] ? undefined : await startPostgres();
  const url = process.argv[3] ?? server.url();
  const hf = await open({ database: url });
  try {
    const create = async (items) => {
      const child = fork(fileURLToPath(import.meta.url), [String(items), url]);
      const [made] = await once(child, "message");
      await once(child, "exit");
      return made;
    };
    const wrong = [];
    for (const event of ["batch.healed", "batch.miscounted", "trouble"]) {
      hf.on(event, (what) => wrong.push(`${event} ${what.error?.message ?? JSON.stringify(what)}`));
    }
    const drain = async (id, items) => {
      await hf.sql.query("checkpoint");
      const worker = await hf.work([kind], { concurrency: 400 });
      const began = performance.now();
      let before = 0;
      // Whether it gets slower on its way.
      const watch = setInterval(() => {
        void hf.batches.get(id).then(({ ended }) => {
          say(`  ${ended} ended, ${Math.round((ended - before) / 20)} per second`);
          before = ended;
        });
      }, 20_000);
      const batch = await hf.batches.wait(id);
      clearInterval(watch);
      const perSecond = items / ((performance.now() - began) / 1_000);
      await worker.stop();
      if (batch.counts.done !== items || batch.ended !== items || batch.completions !== 1) {
        wrong.push(`${items} items: ${JSON.stringify(batch.counts)}, ${batch.completions} completions`);
      }
      return perSecond;
    };
    const small = [];
    const warm = await create(SMALL);
    await drain(warm.id, SMALL);
    for (let run = 0; run < 3; run += 1) small.push(await drain((await create(SMALL)).id, SMALL));
    const made = await create(HUGE);
    say(
      `creating ${HUGE} items: ${made.seconds.toFixed(1)} s, the process grew by ${made.grewMb.toFixed(1)} MB at most`,
    );
    const huge = await drain(made.id, HUGE);
    for (let run = 0; run < 3; run += 1) small.push(await drain((await create(SMALL)).id, SMALL));
    const median = small.toSorted((left, right) => left - right)[Math.floor(small.length / 2)];
    say(`${SMALL} items: ${small.map(Math.round).join(", ")} per second (median ${Math.round(median)})`);
    say(`${HUGE} items: ${Math.round(huge)} per second, ${Math.round((100 * huge) / median)} % of it`);
    if (huge < 0.8 * median) wrong.push("the huge batch is slower than 80 % of the small one");
    if (made.grewMb > MEMORY_MB) wrong.push(`the creating process grew by more than ${MEMORY_MB} MB`);
    for (const text of wrong.slice(0, 10)) say(`WRONG: ${text}`);
    process.exitCode = wrong.length > 0 ? 1 : 0;
  } finally {
    await hf.close();
    await server?.remove();
  }
}
