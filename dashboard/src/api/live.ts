// What keeps the screens fresh. One stream of server-sent events says, at most once a second, that something happened; the
// screen in view then looks again. It stops while the page is hidden, can be paused, and comes back by itself when the
// server or the database was away. Without a stream it looks every few seconds.
import { effect, signal } from "@preact/signals";
import { headers, isLocked, token, urlOf } from "./call.ts";

export type Link = "connecting" | "live" | "away";

export const link = signal<Link>("connecting");
export const isPaused = signal(false);
/** What happened while it was paused. */
export const missed = signal(0);
/** Goes up when screens should look again. */
export const tick = signal(0);
/** When something was last heard of the server. */
export const heardAt = signal(Date.now());
const isHidden = signal(document.hidden);

const LEAST_MS = 1_000;
const POLL_MS = 5_000;
let lastTick = 0;
let waiting: ReturnType<typeof setTimeout> | undefined;

/** Screens look again: now, or as soon as a second has passed since they last did. */
export function refresh(): void {
  if (isHidden.value || waiting !== undefined) return;
  const inMs = Math.max(0, lastTick + LEAST_MS - Date.now());
  waiting = setTimeout(() => {
    waiting = undefined;
    if (isHidden.value) return;
    lastTick = Date.now();
    tick.value += 1;
  }, inMs);
}

function happened(count: number): void {
  heardAt.value = Date.now();
  if (isPaused.value) missed.value += count;
  else refresh();
}

export function togglePause(): void {
  isPaused.value = !isPaused.value;
  missed.value = 0;
  if (!isPaused.value) return refresh();
  // A look that was due in a moment would still change the view.
  clearTimeout(waiting);
  waiting = undefined;
}

let stream: AbortController | undefined;

async function listen(): Promise<void> {
  const mine = (stream = new AbortController());
  let pause = 500;
  while (!mine.signal.aborted) {
    try {
      const response = await fetch(urlOf("/api/v1/events", { type: "pulse,queues" }), {
        headers: headers(),
        signal: mine.signal,
      });
      if (response.status === 401) {
        isLocked.value ??= "This server wants a token.";
        return;
      }
      if (!response.ok || !response.body) throw new Error(String(response.status));
      link.value = "live";
      pause = 500;
      if (!isPaused.value) refresh();
      await read(response.body);
    } catch {
      // Told by `link`.
    }
    if (mine.signal.aborted) return;
    link.value = "away";
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5_000);
  }
}

async function read(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heardAt.value = Date.now();
    text += value;
    const events = text.split("\n\n");
    text = events.pop()!;
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (/^event: pulse$/m.test(event)) happened(countIn(data));
      else if (/^event: queues$/m.test(event)) happened(1);
    }
  }
}

function countIn(data: string | undefined): number {
  const { events } = JSON.parse(data ?? "{}") as { events?: Record<string, number> };
  return Object.values(events ?? {}).reduce((sum, count) => sum + count, 0);
}

export function startLive(): void {
  document.addEventListener("visibilitychange", () => (isHidden.value = document.hidden));
  effect(() => {
    // Again with another token.
    void token.value;
    const isOff = isHidden.value || isLocked.value !== null;
    stream?.abort();
    if (isOff) return;
    link.value = "connecting";
    void listen();
  });
  setInterval(() => {
    if (!isPaused.value && !isHidden.value && isLocked.value === null) refresh();
  }, POLL_MS);
}
