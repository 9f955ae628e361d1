// A server to be killed: on a port that stays the same, so that its clients find it again. Ends with its parent.
import { open } from "../../../dist/open.js";
import { serve } from "../../../dist/http/serve.js";

const { database, port, token } = JSON.parse(process.argv[2]);
const hf = await open({ database, inbox: { draftTimeout: "1s" } });
const server = await serve({ hf, kinds: [], port, token });
process.stdout.write(`${JSON.stringify({ what: "ready", port: server.port })}\n`);
process.stdin.on("end", () => process.exit(0)).resume();
