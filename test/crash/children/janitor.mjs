// A process with a worker under load and a janitor with chores that can tell whether another process runs them too: a
// session lock in the database, which goes when the process does. It says what happens as JSON lines.
//
// config: url, name, chores, hang
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { defineChore, defineJob, open } from "../../../dist/index.js";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();

const locks = new pg.Client({ connectionString: config.url });
await locks.connect();
const hf = await open({ database: config.url });
const locked = async (name) =>
  (await locks.query("select pg_try_advisory_lock(hashtext($1)) as free", [name])).rows[0].free;

for (let n = 0; n < config.chores; n += 1) {
  const name = `busy-${n}`;
  hf.janitor.add(
    defineChore(name, {
      every: "100ms",
      async run(context) {
        if (!(await locked(name))) return say("overlap", { name });
        await sleep(20 + Math.random() * 40);
        await locks.query("select pg_advisory_unlock(hashtext($1))", [name]);
        context.count("turns", 1);
        say("ran", { name });
      },
    }),
  );
}
hf.janitor.add(
  defineChore("long", {
    every: "1h",
    deadline: "5m",
    async run({ signal }) {
      if (!(await locked("long"))) say("overlap", { name: "long" });
      say("long");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await locks.query("select pg_advisory_unlock(hashtext('long'))");
      signal.throwIfAborted();
    },
  }),
);
if (config.hang) {
  hf.janitor.add(
    defineChore("hanging", {
      every: "1h",
      deadline: "300ms",
      run() {
        say("hanging");
        return new Promise(() => {});
      },
    }),
  );
}

const kind = defineJob("load", { run: () => undefined });
await hf.work([kind], { concurrency: 20 });
say("ready");
for (;;) {
  await hf.enqueueMany(
    kind,
    Array.from({ length: 20 }, (_, n) => ({ payload: n })),
  );
  await sleep(100);
}
