// GET /api/v1/events: server-sent events, filtered, bounded, resumed; a stream that nobody reads costs nothing.
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeEventHub } from "#src/http/event-hub.js";
import { useHoldfast } from "../support/open-test.ts";
import { type Api, KINDS, serveApi } from "./api.ts";

const bench = useHoldfast("embedded");
let api: Api;
beforeAll(async () => {
  api = await serveApi(bench.hf);
  await bench.hf.work(KINDS, { grace: "0s", abortGrace: "1s" });
});
afterAll(() => api.close());

interface Event {
  id: string | undefined;
  event: string | undefined;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into events of every shape
  data: any;
}

interface Stream {
  next(name: string): Promise<Event>;
  close(): void;
  readonly seen: Event[];
}

/** A reader of the format, as small as it can be. */
async function listen(query = "", headers: Record<string, string> = {}): Promise<Stream> {
  const abort = new AbortController();
  const response = await fetch(`${api.server.url}/api/v1/events${query}`, { headers, signal: abort.signal });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const seen: Event[] = [];
  const waiting = new Set<() => void>();
  void (async () => {
    let text = "";
    try {
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const fields = Object.fromEntries(
            text
              .slice(0, end)
              .split("\n")
              .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
          );
          text = text.slice(end + 2);
          if (fields["event"] === undefined) continue;
          seen.push({ id: fields["id"], event: fields["event"], data: JSON.parse(fields["data"] ?? "null") });
          for (const look of waiting) look();
        }
      }
    } catch {
      // Closed by the test.
    }
  })();
  const stream: Stream = {
    seen,
    next: (name) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no ${name} in ${JSON.stringify(seen)}`)), 10_000);
        const look = (): void => {
          const found = seen.find(({ event }) => event === name);
          if (!found) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    close: () => abort.abort(),
  };
  await stream.next("hello");
  return stream;
}

const enqueue = async (body: object): Promise<string> => (await api.post("/api/v1/jobs", body)).body.id as string;

test("a job's life is told as it happens", async () => {
  const stream = await listen();
  // Chores and depths are told of too, and nobody knows when.
  const told = () => stream.seen.map(({ event }) => event).filter((name) => !/^(chore\.|queues)/.test(name ?? ""));
  const id = await enqueue({ kind: "greet", payload: { name: "Ada" } });
  expect((await stream.next("job.done")).data).toMatchObject({
    jobId: id,
    kind: "greet",
    queue: "default",
    attempt: 1,
  });
  expect(told()).toEqual(["hello", "job.enqueued", "job.claimed", "job.done"]);
  stream.close();
});

test("only what was asked for; an error comes without its stack", async () => {
  const stream = await listen("?type=job.dead,job.retrying&kind=hopeless");
  await enqueue({ kind: "greet", payload: { name: "Ada" } });
  const id = await enqueue({ kind: "hopeless" });
  const { data } = await stream.next("job.dead");
  expect(data).toMatchObject({ jobId: id, error: { name: "Fatal", message: "no use" } });
  expect(data.error).not.toHaveProperty("stack");
  expect(stream.seen.map(({ event }) => event)).toEqual(["hello", "job.dead"]);
  stream.close();
  const wrong = await api.get("/api/v1/events?type=job.dune");
  expect(wrong.status).toBe(400);
  expect(wrong.body.error.message).toBe('type is "job.dune".');
  const trouble = await api.get("/api/v1/events?type=trouble");
  expect(trouble.status).toBe(400);
});

test("how deep the queues are is told when it changes, whoever changes it", async () => {
  const stream = await listen("?type=queues");
  await bench.hf.queues.pause("told", { by: "ada" });
  await expect
    .poll(
      () => stream.seen.some(({ data }) => data.queues?.some((queue: { queue: string }) => queue.queue === "told")),
      {
        timeout: 10_000,
      },
    )
    .toBe(true);
  const before = stream.seen.length;
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  const changes = stream.seen.slice(before).map(({ data }) => JSON.stringify(data));
  expect(new Set(changes).size).toBe(changes.length);
  await bench.hf.queues.resume("told");
  stream.close();
});

test("one job is told of when it changes, also by another process, without its payload", async () => {
  const { id } = await bench.hf.enqueue(KINDS[0]!, { name: "Ada" }, { delay: "1h" });
  const stream = await listen(`?job=${id}&type=job,queues`);
  expect((await stream.next("job")).data).toMatchObject({ jobId: id, state: "pending", status: "scheduled" });
  // As a worker elsewhere would: this process hears nothing of it.
  await bench.db.query(
    `update holdfast.jobs set progress = '{"done": 41, "total": 148, "note": "x", "at": null}' where id = $1`,
    [id],
  );
  await expect.poll(() => stream.seen.at(-1)?.data.progress?.done, { timeout: 10_000 }).toBe(41);
  await bench.hf.jobs.cancel(id);
  await expect.poll(() => stream.seen.at(-1)?.data.state, { timeout: 10_000 }).toBe("cancelled");
  expect(stream.seen.map(({ event }) => event)).toEqual(["hello", "job", "job", "job"]);
  expect(stream.seen.at(-1)!.data).not.toHaveProperty("payload");
  stream.close();
});

test("who comes back with the last id gets what was said meanwhile, once", async () => {
  const first = await listen("?type=job.done");
  await enqueue({ kind: "anything", payload: 1 });
  const { id } = await first.next("job.done");
  first.close();
  const missed = await enqueue({ kind: "anything", payload: 2 });
  await bench.hf.jobs.wait(missed, { timeout: "10s" });
  const second = await listen("?type=job.done", { "last-event-id": id! });
  expect((await second.next("job.done")).data.jobId).toBe(missed);
  expect(second.seen.filter(({ event }) => event === "job.done")).toHaveLength(1);
  second.close();
  // Of another run of the server: nothing is known about it, and nothing is repeated.
  const third = await listen("?type=job.done", { "last-event-id": "00000000-1" });
  expect(third.seen.map(({ event }) => event)).toEqual(["hello"]);
  third.close();
});

test("a listener that does not read loses events and is told how many; nothing piles up", async () => {
  const hub = makeEventHub(bench.hf);
  const reader = hub.open(
    { types: new Set(["job.enqueued"]), kind: undefined, queue: undefined, job: undefined },
    null,
  );
  const rows = Array.from({ length: 1_000 }, () => ({ payload: null, delay: "1h" as const }));
  await bench.hf.enqueueMany(KINDS[1]!, rows);
  let text = "";
  for await (const chunk of reader) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("lagged")) break;
  }
  expect(text.match(/event: job\.enqueued/g)).toHaveLength(200);
  expect(text).toContain('event: lagged\ndata: {"missed":800}');
  hub.end();
});

test("while nobody listens, nobody is told", async () => {
  let listening = 0;
  const on: typeof bench.hf.on = (name, listener) => {
    listening += 1;
    const stop = bench.hf.on(name, listener);
    return () => {
      listening -= 1;
      stop();
    };
  };
  const hub = makeEventHub({ ...bench.hf, on });
  expect(listening).toBe(0);
  const filter = { types: null, kind: undefined, queue: undefined, job: undefined };
  const stream = hub.open(filter, null);
  expect(listening).toBeGreaterThan(5);
  await stream.cancel();
  hub.end();
  expect(listening).toBe(0);
});

test("there is an end to how many may listen", async () => {
  const hub = makeEventHub(bench.hf);
  const filter = { types: null, kind: undefined, queue: undefined, job: undefined };
  const streams = Array.from({ length: 200 }, () => hub.open(filter, null));
  expect(() => hub.open(filter, null)).toThrow("200 event streams are open already");
  await streams[0]!.cancel();
  expect(() => hub.open(filter, null)).not.toThrow();
  hub.end();
});

test("a HEAD opens no stream, and closing the server ends those that are open", async () => {
  const response = await fetch(`${api.server.url}/api/v1/events`, { method: "HEAD" });
  expect(response.status).toBe(200);
  const other = await serveApi(bench.hf);
  const stream = await fetch(`${other.server.url}/api/v1/events`);
  const startedAt = performance.now();
  await other.server.close();
  expect(await stream.text()).toContain("event: hello");
  expect(performance.now() - startedAt).toBeLessThan(2_500);
});
