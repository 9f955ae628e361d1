// What happens to the owner's imports, as it happens: the change feed, read as a stream so that a token can be shown. It
// goes on where it was after an interruption; nothing is left out.
import { headers } from "/apps/page.js";

const AGAIN_MS = 1500;

export function follow(owner, { onChanges, onLive }) {
  let since;
  let isOver = false;
  let ending = new AbortController();

  async function listen() {
    const query = new URLSearchParams({ owner, ...(since === undefined ? {} : { since }) });
    const answer = await fetch(`/api/v1/batches/changes/stream?${query}`, {
      headers: headers(),
      signal: ending.signal,
    });
    if (!answer.ok) throw new Error(`The feed answered ${answer.status}`);
    onLive(true);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) take(part);
    }
  }

  function take(part) {
    const fields = new Map(
      part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
    );
    if (fields.get("id")) since = fields.get("id");
    if (fields.get("event") === "changes") onChanges(JSON.parse(fields.get("data")));
    // Whatever happened between two streams was not lost, but who has just come has to look once.
    else if (fields.get("event") === "hello") onChanges(null);
  }

  void (async () => {
    while (!isOver) {
      try {
        await listen();
      } catch {
        // The server is away, or this device is.
      }
      if (isOver) return;
      onLive(false);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      ending = new AbortController();
    }
  })();
  return () => {
    isOver = true;
    ending.abort();
  };
}
