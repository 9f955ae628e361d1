// A server with something of everything, for the browser tests and for screenshots: jobs in every state, errors in groups, a
// queue without a worker, an inbox that does not move. Prints its address as one line of JSON when all of it is there.
// Environment: SCENE_DATABASE (default memory:), SCENE_TOKEN, SCENE_PORT, SCENE_EMPTY=1 for a server with nothing.
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { defineBatch, defineJob, Fatal, open } from "../../../dist/index.js";
import { serve } from "../../../dist/http/index.js";

/** Broken until it is mended over HTTP's back door: SIGUSR2. */
let isMended = false;
process.on("SIGUSR2", () => (isMended = true));

const mail = defineJob("mail.send", {
  queue: "mail",
  schema: z.object({
    to: z.string().describe("An address"),
    template: z.enum(["welcome", "invoice", "reminder"]),
    urgent: z.boolean().optional(),
    copies: z.number().int().optional(),
  }),
  run: async (job) => {
    await delay(5 + Math.random() * 40);
    return { sent: true, to: job.payload.to };
  },
});
const charge = defineJob("payments.charge", {
  queue: "payments",
  redact: ["customer.email"],
  attempts: 2,
  backoff: ["100ms"],
  run: async (job) => {
    if (isMended) return { charged: true };
    const cause = Object.assign(new Error("connect ECONNREFUSED 10.0.3.17:8443"), { code: "ECONNREFUSED" });
    throw new Error(`Gateway did not answer for order ${job.payload.order}`, { cause });
  },
});
const importArticle = defineJob("articles.import", {
  queue: "imports",
  attempts: 5,
  backoff: ["1h"],
  run: async (job) => {
    if (job.payload.fatal) throw new Fatal(`Article ${job.payload.id} has no body`);
    throw new TypeError(`Cannot read properties of undefined (reading 'title') in article ${job.payload.id}`);
  },
});
const flaky = defineJob("search.index", {
  queue: "search",
  attempts: 5,
  backoff: ["50ms"],
  run: async (job) => {
    if (job.attempt < 3) throw new Error("Index is busy");
    return { indexed: 12 };
  },
});
const report = defineJob("reports.build", {
  queue: "reports",
  timeout: "1h",
  async run(job) {
    await job.step("collect", async () => ({ rows: 148 }));
    for await (const chunk of job.chunks(
      "pages",
      Array.from({ length: 148 }, (_, n) => n),
      { size: 60, note: "pages" },
    )) {
      await chunk.save(async () => {});
      if (chunk.start >= 60) break;
    }
    await delay(3_600_000, undefined, { signal: job.signal });
  },
});
const nobody = defineJob("video.encode", { queue: "video", run: () => null });

const catalog = defineBatch("catalog.import", {
  queue: "imports",
  outcomes: { saved: {}, duplicate: {}, "no-price": { warning: true } },
  concurrency: 3,
  attempts: 1,
  run: async (job) => {
    const n = job.payload.n;
    if (n % 9 === 4) throw new Fatal(`Product ${n} has no name`);
    if (n >= 40) await delay(3_600_000, undefined, { signal: job.signal });
    return n % 7 === 0 ? "duplicate" : n % 5 === 0 ? "no-price" : "saved";
  },
});

const KINDS = [mail, charge, importArticle, flaky, report, nobody, catalog];

const hf = await open({ database: process.env.SCENE_DATABASE ?? "memory:", inbox: { stuckAfter: "1s" } });
const server = await serve({
  hf,
  kinds: KINDS,
  port: Number(process.env.SCENE_PORT ?? 0),
  token: process.env.SCENE_TOKEN,
  environment: process.env.SCENE_ENVIRONMENT ?? "staging",
  settings: [
    { name: "database", value: "memory:", source: "SCENE_DATABASE" },
    { name: "concurrency", value: "20", source: "default" },
    { name: "token", value: "***", source: "HOLDFAST_TOKEN" },
  ],
});
const worker = await hf.work([mail, charge, importArticle, flaky, report, catalog], {
  concurrency: 20,
  name: "web-1:4711",
  grace: "0s",
  abortGrace: "1s",
});

if (process.env.SCENE_EMPTY !== "1") await fill();
process.stdout.write(`${JSON.stringify({ url: server.url })}\n`);

async function fill() {
  const all = async (kind, rows) => await hf.enqueueMany(kind, rows);
  const templates = ["welcome", "invoice", "reminder"];
  await all(
    mail,
    Array.from({ length: 240 }, (_, n) => ({ payload: { to: `user${n}@example.com`, template: templates[n % 3] } })),
  );
  const charges = await all(
    charge,
    Array.from({ length: 12 }, (_, n) => ({
      payload: { order: 4_100 + n, customer: { id: 77, email: "ada.lovelace@example.com", apiToken: "tok_live_9f" } },
    })),
  );
  const imports = await all(
    importArticle,
    Array.from({ length: 6 }, (_, n) => ({ payload: { id: 900 + n, fatal: n < 2 } })),
  );
  const flakies = await all(flaky, [{ payload: { doc: 1 } }, { payload: { doc: 2 } }]);
  // From SQL, which knows larger numbers than JavaScript.
  await hf.sql.query(
    `select holdfast.enqueue('reports.build', '{"month": "2026-10", "account": 9007199254740993}', key => 'report 2026-10', queue => 'reports')`,
  );
  await hf.enqueue(mail, { to: "later@example.com", template: "reminder" }, { delay: "4m" });
  await all(
    nobody,
    Array.from({ length: 3 }, (_, n) => ({ payload: { video: n } })),
  );
  const cancelled = await hf.enqueue(mail, { to: "never@example.com", template: "welcome" }, { delay: "1h" });
  await hf.jobs.cancel(cancelled.id);
  await hf.batches.create(
    catalog,
    Array.from({ length: 60 }, (_, n) => ({ n })),
    { key: "catalog 2026-11" },
  );
  await hf.queues.pause("newsletter", { by: "ada" });
  const newsletter = { ...mail, queue: "newsletter" };
  await hf.enqueue(newsletter, { to: "all@example.com", template: "welcome" });
  const recipient = hf.inbox("ws-17");
  await recipient.put(new Uint8Array(48_000), { name: "photo.jpg", type: "image/jpeg" });
  await recipient.put(new TextEncoder().encode("hello"), { name: "notes.txt", type: "text/plain" });
  const other = hf.inbox("ws-18");
  const { id: parcel } = await other.put(new TextEncoder().encode("a,b"), { name: "done.csv", type: "text/csv" });
  await other.ack(parcel);
  for (const { id } of [...charges, ...flakies]) await hf.jobs.wait(id, { timeout: "20s" });
  for (const { id } of imports) {
    for (let n = 0; n < 200 && (await hf.jobs.get(id)).attempt === 0; n += 1) await delay(50);
  }
  await delay(1_200);
  for (const chore of ["add-run-counts", "add-error-counts", "measure-queues", "roll-up"]) await hf.janitor.run(chore);
}

const stop = async () => {
  await worker.stop();
  await server.close();
  await hf.close();
  process.exit(0);
};
process.on("SIGTERM", () => void stop());
process.on("SIGINT", () => void stop());
