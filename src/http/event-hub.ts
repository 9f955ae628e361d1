// The process's events for everybody who listens over HTTP, as server-sent events.
//
// Costs nothing while nobody listens. A listener that is slow loses events and is told how many, never the server its
// memory. Who comes back with Last-Event-ID within half a minute gets what was said meanwhile.
import { randomBytes } from "node:crypto";
import type { Holdfast } from "../client/client.ts";
import { EVENT_NAMES, type HoldfastEvents } from "../metrics/events.ts";
import type { Pulse } from "../shared/pulse.ts";
import { Refusal } from "./errors.ts";
import { makeLookAround } from "./look-around.ts";

type EventName = keyof HoldfastEvents;

/** They may hold what only the log should, or are about how, not what: for metrics. */
const NOT_TOLD: readonly EventName[] = ["trouble", "lease.beat", "enqueue.made", "claim.made", "wake.heard"];
const HEARD: readonly EventName[] = EVENT_NAMES.filter((name) => !NOT_TOLD.includes(name));

/** That something happened, and how often: for those who then look themselves. At most once a second. */
const PULSE = "pulse";
/** What all processes do: told when it changes, looked at while somebody wants to know. */
export const STREAMED: readonly string[] = [...HEARD, "queues", "job", PULSE];

export interface EventFilter {
  types: ReadonlySet<string> | null;
  kind: string | undefined;
  queue: string | undefined;
  job: string | undefined;
}

export interface EventHub {
  /** A stream of what fits the filter; first what came after `lastId`, if that is still known. */
  open(filter: EventFilter, lastId: string | null): ReadableStream<Uint8Array>;
  /** Ends all streams. */
  end(): void;
}

interface Said {
  seq: number;
  name: string;
  fields: Record<string, unknown>;
}

interface Listening {
  filter: EventFilter;
  waiting: Said[];
  missed: number;
  controller: ReadableStreamDefaultController<Uint8Array>;
}

const MAX_STREAMS = 200;
const FLUSH_MS = 100;
/** For each listener, until the next flush: two thousand events a second. */
const MAX_WAITING = 200;
const REMEMBERED = 1_000;
const BEAT_MS = 15_000;
const LINGER_MS = 30_000;
const LOOK_MS = 2_000;
const PULSE_MS = 1_000;

export function makeEventHub(hf: Holdfast): EventHub {
  const run = randomBytes(4).toString("hex");
  const listeners = new Set<Listening>();
  let remembered: Said[] = [];
  let seq = 0;
  let stops: (() => void)[] = [];
  let flushing: NodeJS.Timeout | undefined;
  let beating: NodeJS.Timeout | undefined;
  let leaving: NodeJS.Timeout | undefined;
  let looking: NodeJS.Timeout | undefined;
  let isLooking = false;
  let pulse: Pulse | undefined;
  const around = makeLookAround(hf);
  let pulsing: NodeJS.Timeout | undefined;
  let happened: Record<string, number> = {};
  const encoder = new TextEncoder();

  const textOf = ({ seq: id, name, fields }: Said): string =>
    `id: ${run}-${id}\nevent: ${name}\ndata: ${JSON.stringify(fields)}\n\n`;

  function hear(name: string, event: object): void {
    if (name !== PULSE) happened[name] = (happened[name] ?? 0) + 1;
    const said = { seq: (seq += 1), name, fields: publicFields(event) };
    remembered.push(said);
    if (remembered.length > 2 * REMEMBERED) remembered = remembered.slice(-REMEMBERED);
    for (const listener of listeners) if (fits(listener.filter, said)) take(listener, said);
    flushing ??= setTimeout(flush, FLUSH_MS).unref();
  }

  function take(listener: Listening, said: Said): void {
    if (listener.waiting.length < MAX_WAITING) listener.waiting.push(said);
    else listener.missed += 1;
  }

  function flush(): void {
    flushing = undefined;
    for (const listener of listeners) send(listener);
  }

  function send(listener: Listening, more = ""): void {
    const { controller, waiting, missed } = listener;
    // It has not taken what it was given before.
    if ((controller.desiredSize ?? 0) <= 0) return;
    const lost = missed === 0 ? "" : `event: lagged\ndata: {"missed":${missed}}\n\n`;
    const text = waiting.map(textOf).join("") + lost + more;
    listener.waiting = [];
    listener.missed = 0;
    if (text !== "") controller.enqueue(encoder.encode(text));
  }

  function start(): void {
    clearTimeout(leaving);
    leaving = undefined;
    if (stops.length > 0) return;
    stops = HEARD.map((name) => hf.on(name, (event) => hear(name, event)));
    beating = setInterval(() => {
      for (const listener of listeners) send(listener, ": beat\n\n");
    }, BEAT_MS).unref();
    pulse = hf.health.register("event streams");
    pulse.beat(LOOK_MS);
    looking = setInterval(() => void lookAround(), LOOK_MS).unref();
    pulsing = setInterval(() => {
      if (Object.keys(happened).length > 0) hear(PULSE, { events: happened });
      happened = {};
    }, PULSE_MS).unref();
  }

  async function lookAround(): Promise<void> {
    if (isLooking) return;
    pulse?.beat(LOOK_MS);
    const wants = (name: string): EventFilter[] =>
      [...listeners].flatMap(({ filter }) => (filter.types === null || filter.types.has(name) ? [filter] : []));
    // Who asks for one job is not told of the queues.
    const queues = wants("queues").some(({ job }) => job === undefined);
    const jobs = new Set(wants("job").flatMap(({ job }) => job ?? []));
    if (!queues && jobs.size === 0) return;
    isLooking = true;
    try {
      for (const { name, event } of await around.look({ queues, jobs })) hear(name, event);
    } finally {
      isLooking = false;
    }
  }

  function leave(listener: Listening): void {
    listeners.delete(listener);
    if (listeners.size === 0) leaving ??= setTimeout(stop, LINGER_MS).unref();
  }

  function stop(): void {
    for (const stopListening of stops) stopListening();
    stops = [];
    remembered = [];
    leaving = undefined;
    clearInterval(beating);
    clearInterval(looking);
    pulse?.end();
    clearInterval(pulsing);
    happened = {};
    around.forget();
    clearTimeout(flushing);
    flushing = undefined;
  }

  return {
    open(filter, lastId) {
      if (listeners.size >= MAX_STREAMS) {
        throw new Refusal(
          "HOLDFAST_HTTP_TOO_MANY_STREAMS",
          `${MAX_STREAMS} event streams are open already.`,
          "Close one, or ask again later.",
          { "retry-after": "5" },
        );
      }
      start();
      let listener: Listening;
      return new ReadableStream<Uint8Array>(
        {
          start(controller) {
            listener = { filter, waiting: [], missed: 0, controller };
            const [, after] = new RegExp(`^${run}-(\\d{1,15})$`).exec(lastId ?? "") ?? [];
            if (after !== undefined) {
              for (const said of remembered) if (said.seq > Number(after) && fits(filter, said)) take(listener, said);
            }
            // Somebody who asks wants to know at once that it works.
            send(listener, `retry: 2000\nid: ${run}-${seq}\nevent: hello\ndata: {}\n\n`);
            listeners.add(listener);
          },
          cancel: () => leave(listener),
        },
        { highWaterMark: 8 },
      );
    },
    end() {
      for (const listener of listeners) {
        send(listener);
        listener.controller.close();
      }
      listeners.clear();
      clearTimeout(leaving);
      stop();
    },
  };
}

function fits({ types, kind, queue, job }: EventFilter, { name, fields }: Said): boolean {
  return (
    (types === null || types.has(name)) &&
    (kind === undefined || fields["kind"] === kind) &&
    (queue === undefined || fields["queue"] === queue) &&
    (job === undefined || fields["jobId"] === job)
  );
}

/** Without stacks: they are long, and the job has them. */
function publicFields(event: object): Record<string, unknown> {
  const fields: Record<string, unknown> = { ...event };
  const { error } = fields;
  if (error !== null && typeof error === "object" && "stack" in error) {
    const { stack: _, cause: __, ...rest } = { cause: undefined, ...error };
    fields["error"] = rest;
  }
  return fields;
}
