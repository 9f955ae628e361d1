// Compiled by `npm run types`, never run: payloads are inferred from a Standard Schema or from the handler, and a wrong
// one does not compile.
import { z } from "zod";
import { defineJob, type Holdfast, type JobContext, type JobKind } from "#src/index.js";
import { runJob } from "#src/testing/index.js";
import { expectType, type Same } from "./expect-type.ts";

declare const hf: Holdfast;

// ---- from a schema: what goes in may differ from what the handler gets

const send = defineJob("mail.send", {
  schema: z.object({
    to: z.string(),
    copies: z.number().default(1),
    at: z.string().transform((text) => new Date(text)),
  }),
  async run(job) {
    expectType<Same<typeof job.payload, { to: string; copies: number; at: Date }>>();
    await job.progress(1, 2, "half");
    return { sent: job.payload.copies };
  },
});

expectType<
  Same<
    typeof send,
    JobKind<
      { to: string; copies: number; at: Date },
      { to: string; copies?: number | undefined; at: string },
      { sent: number }
    >
  >
>();

export async function withSchema(): Promise<void> {
  await hf.enqueue(send, { to: "a", at: "2030-01-01" });
  await hf.enqueue(send, { to: "a", at: "2030-01-01", copies: 2 });
  // @ts-expect-error to is missing
  await hf.enqueue(send, { at: "2030-01-01" });
  // @ts-expect-error a number is no text
  await hf.enqueue(send, { to: 7, at: "2030-01-01" });
  // @ts-expect-error what goes in is a text, not the Date that comes out
  await hf.enqueue(send, { to: "a", at: new Date() });
  // @ts-expect-error there is no cc
  await hf.enqueue(send, { to: "a", at: "2030-01-01", cc: "b" });
  // @ts-expect-error nothing is not a payload
  await hf.enqueue(send);
  await hf.enqueueMany(send, [{ payload: { to: "a", at: "2030-01-01" }, priority: 3 }]);
  // @ts-expect-error the payload of a row is checked too
  await hf.enqueueMany(send, [{ payload: { to: 7 } }]);
  // @ts-expect-error one wrong row among right ones
  await hf.enqueueMany(send, [{ payload: { to: "a", at: "b" } }, { payload: { to: 7, at: "b" } }]);
  // @ts-expect-error a row is not the payload itself
  await hf.enqueueMany(send, [{ to: "a", at: "2030-01-01" }]);
  const { result } = await runJob(send, { to: "a", at: "2030-01-01" });
  expectType<Same<typeof result, { sent: number } | undefined>>();
  // @ts-expect-error also for one run in a test
  await runJob(send, { to: 7 });
}

// ---- from a type argument

const resize = defineJob<{ file: string; width: number }>("image.resize", {
  run(job) {
    expectType<Same<typeof job.payload.width, number>>();
    // @ts-expect-error there is no height
    return job.payload.height;
  },
});

export async function withType(): Promise<void> {
  await hf.enqueue(resize, { file: "a.png", width: 7 });
  // @ts-expect-error width is missing
  await hf.enqueue(resize, { file: "a.png" });
}

// ---- from the handler alone

const tidy = defineJob("house.tidy", { run: (job: JobContext<{ room: string }>) => job.payload.room.length });
expectType<Same<typeof tidy, JobKind<{ room: string }, { room: string }, number>>>();

export async function withHandler(): Promise<void> {
  await hf.enqueue(tidy, { room: "attic" });
  // @ts-expect-error a room has a name
  await hf.enqueue(tidy, { room: 7 });
}

// ---- from nothing: anything goes, and the handler must look

const anything = defineJob("any.thing", {
  run(job) {
    expectType<Same<typeof job.payload, unknown>>();
    // @ts-expect-error it could be anything
    return job.payload.length;
  },
});

export async function withNothing(): Promise<void> {
  await hf.enqueue(anything, { whatever: 1 });
  await hf.enqueue(anything, null);
}

// ---- a definition that cannot work does not compile

// @ts-expect-error there is no handler
defineJob("no.handler", { attempts: 3 });
// @ts-expect-error a schema of nothing known
defineJob("no.schema", { schema: { parse: () => 1 }, run: () => undefined });
// @ts-expect-error attempts are a number
defineJob("no.number", { attempts: "3", run: () => undefined });
// @ts-expect-error there is no such option
defineJob("no.option", { retries: 3, run: () => undefined });

export const untouchable = (): void => {
  // @ts-expect-error a kind cannot be changed
  send.queue = "other";
  // @ts-expect-error nor can what a handler is given
  void ((job: JobContext) => (job.attempt = 1));
};
