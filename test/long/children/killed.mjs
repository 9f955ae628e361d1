// A worker that kills itself at one place of its job. config: url, schema, kind, lease, dieAt
//   dieAt "…-unheard": the server has confirmed the COMMIT, and the process dies before it is told.
import { Client } from "pg";
import { open } from "../../../dist/index.js";
import { defineEmbedding } from "./embedding.mjs";

const config = JSON.parse(process.argv[2]);
const say = (what, fields = {}) => process.stdout.write(`${JSON.stringify({ what, ...fields })}\n`);
// Nobody wants this process any more.
process.stdin
  .on("end", () => process.exit(3))
  .on("error", () => process.exit(3))
  .resume();

const die = () => process.kill(process.pid, "SIGKILL");
/** The next COMMIT is confirmed, and nobody hears of it. */
let isArmed = false;
const send = Client.prototype.query;
Client.prototype.query = function query(statement, ...rest) {
  if (isArmed && statement?.text === "commit") statement.callback = die;
  return send.call(this, statement, ...rest);
};

const kind = defineEmbedding(config.kind, config.lease, async (place, chunk) => {
  // In the middle of the list, so that there is something before it and something after it.
  if (chunk && chunk.start !== 2) return;
  if (place === config.dieAt) die();
  if (`${place}-unheard` === config.dieAt) isArmed = true;
  // Killed: it does not go on while the signal is on its way.
  if (place === config.dieAt) await new Promise(() => {});
});

const hf = await open({ database: config.url, schema: config.schema });
hf.on("trouble", ({ where, error }) => say("trouble", { where, message: String(error?.message ?? error) }));
await hf.enqueue(kind, null);
await hf.work([kind], { concurrency: 1, name: config.name });
say("ready");
