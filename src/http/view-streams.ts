// Views as streams of server-sent events: each is told how it stands, and again when that has changed. Streams of one view
// share one look; what does not change is looked at less and less often, up to every five seconds.
import type { Holdfast } from "../client/client.ts";
import type { View } from "../client/views.ts";
import { Refusal } from "./errors.ts";

export interface ViewStreams {
  /** `first`: how it stands. */
  open(view: string, first: View): ReadableStream<Uint8Array>;
  end(): void;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

interface Watched {
  controllers: Set<Controller>;
  last: string;
  pauseMs: number;
  timer: NodeJS.Timeout | undefined;
  saidAt: number;
}

const MAX_STREAMS = 500;
const LEAST_MS = 1_000;
const MOST_MS = 5_000;
const BEAT_MS = 15_000;

export const isOver = ({ status }: View): boolean => status === "done" || status === "dead" || status === "cancelled";

export function makeViewStreams(hf: Holdfast): ViewStreams {
  const watched = new Map<string, Watched>();
  const encoder = new TextEncoder();
  const textOf = (view: View): string => `event: view\ndata: ${JSON.stringify(view)}\n\n`;
  let count = 0;

  function tell(one: Watched, text: string): void {
    one.saidAt = performance.now();
    const bytes = encoder.encode(text);
    for (const controller of one.controllers) {
      // It has not taken what it was given before: the next change is as good.
      if ((controller.desiredSize ?? 0) > 0) controller.enqueue(bytes);
    }
  }

  function close(view: string, one: Watched): void {
    clearTimeout(one.timer);
    watched.delete(view);
    for (const controller of one.controllers) controller.close();
    count -= one.controllers.size;
    one.controllers.clear();
  }

  async function look(view: string, one: Watched): Promise<void> {
    try {
      const now = await hf.views.read(view);
      if (one.controllers.size === 0) return;
      // Its time is over, or what it is about is gone: whoever asks again is told so.
      if (!now) return close(view, one);
      const text = textOf(now);
      one.pauseMs = text === one.last ? Math.min(one.pauseMs * 1.5, MOST_MS) : LEAST_MS;
      if (text !== one.last) tell(one, (one.last = text));
      if (isOver(now)) return close(view, one);
    } catch {
      // The database is away: nothing is known, so nothing is told.
    }
    if (one.controllers.size === 0) return;
    if (performance.now() - one.saidAt > BEAT_MS) tell(one, ": beat\n\n");
    one.timer = setTimeout(() => void look(view, one), one.pauseMs).unref();
  }

  return {
    open(view, first) {
      if (count >= MAX_STREAMS) {
        throw new Refusal("HOLDFAST_HTTP_TOO_MANY_STREAMS", `${MAX_STREAMS} streams are open.`, "Try again later.", {
          "retry-after": "5",
        });
      }
      let mine: Controller;
      return new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(encoder.encode(textOf(first)));
          if (isOver(first)) return controller.close();
          mine = controller;
          count += 1;
          const known = watched.get(view);
          if (known) return void known.controllers.add(controller);
          const one: Watched = {
            controllers: new Set([controller]),
            last: textOf(first),
            pauseMs: LEAST_MS,
            timer: undefined,
            saidAt: performance.now(),
          };
          watched.set(view, one);
          one.timer = setTimeout(() => void look(view, one), LEAST_MS).unref();
        },
        cancel() {
          const one = watched.get(view);
          if (!one?.controllers.delete(mine)) return;
          count -= 1;
          if (one.controllers.size > 0) return;
          clearTimeout(one.timer);
          watched.delete(view);
        },
      });
    },
    end() {
      for (const [view, one] of watched) close(view, one);
    },
  };
}
