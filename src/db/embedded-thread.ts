// The thread that PGlite runs in, so that its synchronous calls block nobody else. It does what embedded-link.ts asks:
// orders are objects, each answered by one object; anything else is a message of PostgreSQL's protocol, answered by
// its reply. After a failure that the engine does not survive the thread ends.
import { parentPort } from "node:worker_threads";
import { Engine } from "./embedded-engine.ts";
import type { Answer, Order } from "./embedded-link.ts";

const port = parentPort;
let engine: Engine | null = null;

async function obey(order: Order): Promise<void> {
  if (order.do === "close") await engine?.close();
  else if (order.do === "initialise") await Engine.initialise(order.pgdata, order.seed);
  else if (order.do === "open") engine = await Engine.open(order.pgdata);
  else engine = await Engine.openInMemory(order.seed);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function handle(message: Order | Uint8Array): Promise<void> {
  if (!(message instanceof Uint8Array)) {
    const answer: Answer = await obey(message).then(
      () => ({ failed: null }),
      (error: unknown) => ({ failed: textOf(error) }),
    );
    port?.postMessage(answer);
    return;
  }
  if (engine === null) throw new Error("The engine is not open.");
  const reply = await engine.exec(message);
  port?.postMessage(reply, [reply.buffer]);
}

/** As an uncaught exception, which reaches the other side as an error whatever --unhandled-rejections says. */
function die(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

let last: Promise<void> = Promise.resolve();
port?.on("message", (message: Order | Uint8Array) => {
  last = last.then(() => handle(message)).catch(die);
});
const loaded: Answer = { failed: null };
port?.postMessage(loaded);
