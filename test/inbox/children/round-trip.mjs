// A round trip of a large file in a process of its own, which says how much memory it took at its peak. Its input is
// made as it is read: nothing here holds the file, unless it is told to, to show that the measure would notice.
import { createHash } from "node:crypto";
import { open } from "../../../dist/open.js";
import { serve } from "../../../dist/http/serve.js";

const { database, size, mode } = JSON.parse(process.argv[2]);
const MIB = 1_048_576;

const block = Buffer.alloc(65_536);
async function* made(bytes) {
  for (let at = 0, n = 0; at < bytes; at += block.length, n += 1) {
    block.fill(n % 251);
    block.writeUInt32BE(n);
    yield Buffer.from(block.subarray(0, Math.min(block.length, bytes - at)));
  }
}

let peak = 0;
const look = () => {
  peak = Math.max(peak, process.memoryUsage.rss());
};
setInterval(look, 5).unref();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const hf = await open({ database });
const inbox = hf.inbox("round-trip");

async function roundTrip(bytes) {
  const held = [];
  const parcel = await inbox.put(mode === "hold" ? await collect(made(bytes), held) : made(bytes), { name: "big" });
  const hash = createHash("sha256");
  for await (const piece of (await inbox.open(parcel.id)).stream()) {
    hash.update(piece);
    look();
  }
  await inbox.ack(parcel.id);
  return { matches: hash.digest("hex") === parcel.sha256, size: parcel.size };
}

function begin() {
  globalThis.gc?.();
  return (peak = process.memoryUsage.rss());
}

async function collect(pieces, held) {
  for await (const piece of pieces) held.push(piece);
  return Buffer.concat(held);
}

// What a first use costs once: code, plans, buffers of the pool, the engine's own memory.
for (let n = 0; n < 3; n += 1) await roundTrip(8 * MIB);
let before = begin();
if (mode === "http") {
  const server = await serve({ hf, kinds: [], port: 0, token: "0123456789abcdef" });
  const told = () => new Promise((resolve) => process.stdin.once("data", resolve));
  say({ what: "serving", url: server.url });
  await told();
  before = begin();
  say({ what: "measuring" });
  await told();
  await server.close();
} else {
  say({ what: "went", ...(await roundTrip(size)) });
}
// And removed in bounded steps.
await hf.janitor.run("purge-inbox");
look();
say({ what: "took", mib: Math.round((peak - before) / MIB), before: Math.round(before / MIB) });
await hf.close();
process.exit(0);
