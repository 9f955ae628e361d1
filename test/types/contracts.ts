// Types of inputs and answers are inferred from the contracts; apps and their routes are checked.
import { defineApp, defineConfig, defineJob } from "#src/index.js";
import type { BodyOf, Contracts, InputOf, OutputOf } from "#src/http/index.js";
import { expectType, type Same } from "./expect-type.ts";

declare const job: OutputOf<Contracts["readJob"]>;
expectType<Same<typeof job.id, string>>();
expectType<Same<typeof job.state, "pending" | "running" | "done" | "dead" | "cancelled">>();
expectType<Same<typeof job.finishedAt, string | null>>();
// @ts-expect-error -- a job has no such field
void job.finished;

declare const filter: InputOf<Contracts["listJobs"]>;
expectType<Same<typeof filter.query.limit, number | undefined>>();
expectType<Same<typeof filter.body, null>>();

const body: BodyOf<Contracts["enqueueJob"]> = { kind: "mail.send", payload: { any: "thing" }, priority: 5, key: null };
void body;
// @ts-expect-error -- a job needs a kind
const without: BodyOf<Contracts["enqueueJob"]> = { payload: 1 };
void without;

const app = defineApp({
  name: "app",
  jobs: (hf) => [defineJob("a", { run: async () => (await hf.sql.query<{ n: number }>("select 1 as n")).rows[0]?.n })],
  routes: [
    { method: "GET", path: "/a", auth: "public", handle: ({ params }) => params["x"]?.length },
    { method: "POST", path: "/b", auth: (request) => request.headers.has("x"), handle: ({ json }) => json() },
    // @ts-expect-error -- who may call must be said
    { method: "GET", path: "/c", handle: () => null },
    // @ts-expect-error -- a path begins with a slash
    { method: "GET", path: "d", auth: "public", handle: () => null },
  ],
});
defineConfig({ apps: [app], concurrency: 5 });
// @ts-expect-error -- an app is not a kind
defineConfig({ jobs: [app] });
