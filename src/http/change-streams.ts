// The feed of changes for everybody who listens over HTTP, as server-sent events: each stream from its own place on, in order,
// nothing left out. Who comes back with Last-Event-ID goes on where it was, after however long.
//
// One look at the end of the feed serves all streams, and there is none while nobody listens. A reader that is slow is
// given nothing more until it has taken what it has: the feed waits in the database, not here.
import type { Holdfast } from "../client/client.ts";
import { OptionInvalid } from "../errors.ts";
import type { HoldfastEvents } from "../metrics/events.ts";
import { checkInboxName } from "../shared/inbox-name.ts";
import type { Pulse } from "../shared/pulse.ts";
import { toChangesView } from "./batch-view.ts";
import { Refusal } from "./errors.ts";
import type { Eyes } from "./eyes.ts";

export interface ChangeStreamInput {
  owner: string | undefined;
  /** Undefined: from now on. */
  since: string | undefined;
  eyes: Eyes;
}

export interface ChangeStreams {
  open(input: ChangeStreamInput): Promise<ReadableStream<Uint8Array>>;
  end(): void;
}

interface Stream extends ChangeStreamInput {
  since: string;
  controller: ReadableStreamDefaultController<Uint8Array>;
}

const MAX_STREAMS = 200;
const LOOK_MS = 500;
/** After something happened in this process: soon, and not for each of many. */
const SOON_MS = 50;
const BEAT_MS = 15_000;
const PAGE = 100;
/** Whoever owns nothing is told only where the feed ends. */
const NOBODY = "_";
const NEWS: readonly (keyof HoldfastEvents)[] = ["batch.created", "batch.finished", "batch.cancelled", "item.ended"];

export function makeChangeStreams(hf: Holdfast): ChangeStreams {
  const streams = new Set<Stream>();
  const encoder = new TextEncoder();
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Infinity;
  let isLooking = false;
  let beatAt = 0;
  let pulse: Pulse | undefined;
  let stops: (() => void)[] = [];

  const endOfFeed = async (): Promise<string> => {
    for (let since = "0"; ;) {
      const { next, more } = await hf.batches.changes({ since, owner: NOBODY, limit: 500 });
      if (!more) return next;
      since = next;
    }
  };

  function start(): void {
    if (pulse) return;
    pulse = hf.health.register("change streams");
    stops = NEWS.map((name) => hf.on(name, () => lookIn(SOON_MS)));
    lookIn(LOOK_MS);
  }

  function stop(): void {
    clearTimeout(timer);
    dueAt = Infinity;
    for (const end of stops) end();
    stops = [];
    pulse?.end();
    pulse = undefined;
  }

  function lookIn(ms: number): void {
    const at = performance.now() + ms;
    if (at >= dueAt) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => void look(), ms).unref();
  }

  async function look(): Promise<void> {
    dueAt = Infinity;
    if (isLooking || streams.size === 0) return;
    isLooking = true;
    pulse?.beat(LOOK_MS);
    let hasMore = false;
    try {
      const end = BigInt(await endOfFeed());
      for (const stream of streams) {
        if (BigInt(stream.since) < end && (await tell(stream))) hasMore = true;
      }
      beat();
    } catch {
      // The database is away: nothing is known, so nothing is told. The streams go on from where they are.
    } finally {
      isLooking = false;
      if (streams.size > 0) lookIn(hasMore ? 0 : LOOK_MS);
    }
  }

  /** True: there is more for it right now. */
  async function tell(stream: Stream): Promise<boolean> {
    // It has not taken what it was given before.
    if ((stream.controller.desiredSize ?? 0) <= 0) return false;
    const { owner, since, eyes } = stream;
    const changes = await hf.batches.changes({ since, limit: PAGE, ...(owner !== undefined && { owner }) });
    if (!streams.has(stream)) return false;
    stream.since = changes.next;
    if (changes.changes.length > 0 || changes.reset) {
      send(stream, "changes", toChangesView(changes, eyes));
    }
    return changes.more;
  }

  function send(stream: Stream, event: string, data: unknown): void {
    stream.controller.enqueue(
      encoder.encode(`id: ${stream.since}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    );
  }

  function beat(): void {
    if (performance.now() - beatAt < BEAT_MS) return;
    beatAt = performance.now();
    const text = encoder.encode(": beat\n\n");
    for (const { controller } of streams) if ((controller.desiredSize ?? 0) > 0) controller.enqueue(text);
  }

  return {
    async open({ owner, since, eyes }) {
      if (since !== undefined && !/^\d{1,18}$/.test(since)) {
        throw new OptionInvalid(`since is ${JSON.stringify(since.slice(0, 50))}.`, "Give the `next` of an answer.");
      }
      // Said now: a question that is always refused would keep those behind it from being told.
      if (owner !== undefined) checkInboxName("owner", owner);
      if (streams.size >= MAX_STREAMS) {
        throw new Refusal("HOLDFAST_HTTP_TOO_MANY_STREAMS", `${MAX_STREAMS} streams are open.`, "Try again later.", {
          "retry-after": "5",
        });
      }
      const from = since ?? (await endOfFeed());
      let stream: Stream;
      return new ReadableStream<Uint8Array>({
        start(controller) {
          stream = { owner, since: from, eyes, controller };
          streams.add(stream);
          send(stream, "hello", { since: from });
          start();
          lookIn(SOON_MS);
        },
        pull: () => lookIn(SOON_MS),
        cancel() {
          streams.delete(stream);
          if (streams.size === 0) stop();
        },
      });
    },
    end() {
      for (const { controller } of streams) controller.close();
      streams.clear();
      stop();
    },
  };
}
