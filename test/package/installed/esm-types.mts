// Compiled against the installed package by `npm run check:package`, with TypeScript 5.9 and 6.
import { defineBatch, defineJob, type Holdfast, type JobContext, open, RetryAfter } from "holdfast";
import { type GuardedFetch, makeGuardedFetch } from "holdfast/guarded-fetch";
import { CONTRACTS, makeHandler, serve } from "holdfast/http";
import { runDue, openTest } from "holdfast/testing";

export const greet = defineJob("greet", {
  lease: "30s",
  run(job: JobContext<{ name: string }>) {
    if (job.attempt > 3) throw new RetryAfter("5m");
    return { greeting: `Hello, ${job.payload.name}!` };
  },
});
export const imports = defineBatch("imports", { outcomes: { saved: {} }, run: () => "saved" });

export async function main(): Promise<void> {
  await using hf: Holdfast = await open({ database: "memory:" });
  const { id } = await hf.enqueue(greet, { name: "Ada" }, { key: "ada", delay: "1s" });
  // @ts-expect-error a payload of another shape
  await hf.enqueue(greet, { nam: "Ada" });
  const { state } = await hf.jobs.wait(id);
  const states: "done" | "dead" | "cancelled" | "pending" | "running" = state;
  const answer: Response = await makeHandler({ hf, kinds: [greet] })(new Request(`http://localhost/${states}`));
  await serve({ hf, kinds: [greet], host: "127.0.0.1", port: 0 });
  const test = await openTest({ clock: "2030-01-01T00:00:00Z" });
  await runDue(test, [greet, imports]);
  const fetchGuarded: GuardedFetch = makeGuardedFetch();
  void [answer, CONTRACTS, fetchGuarded];
}
