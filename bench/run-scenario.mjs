// One contender, one scenario, one fresh database, one process: prints one JSON line and exits.
//
//   node run-scenario.mjs <contender> <scenario> <database url> <seconds>
//
// A contender exports `setup(url, tuning)`, which makes its schema and resolves to
//   { settings, enqueueMany(payloads), enqueueOne(payload), startWorker(onJob), stop(), counts() }
// and perhaps more that only some scenarios ask for; and perhaps `share`, the part of a scenario's jobs that it can do in its time. The handler of every contender calls `onJob(payload)` and nothing
// else. A scenario exports its `tuning` (throughput, enqueue or latency) and `run(bench)`.
import { makeBench } from "./bench.mjs";

const [contenderName, scenario, url, seconds] = process.argv.slice(2);
const [name, variant] = scenario.split(/-(?=\d)/);
const { run, tuning, isLeftUndone = false } = await import(`./scenarios/${name}.mjs`);
const { setup, share = 1 } = await import(`./contenders/${contenderName}.mjs`);

const bench = makeBench({
  contender: await setup(url, tuning),
  contenderName,
  share,
  tuning,
  url,
  measureMs: Number(seconds) * 1000,
  variant: variant === undefined ? undefined : Number(variant),
});
const result = await run(bench);
const counts = await bench.check(isLeftUndone);
process.stdout.write(`${JSON.stringify({ result, counts, settings: bench.contender.settings })}\n`);
process.exit(0);
