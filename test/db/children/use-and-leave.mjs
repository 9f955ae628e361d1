// Opens a database, uses it and comes to its end without closing it: the process must end by itself.
// node use-and-leave.mjs <seed>
import { openEmbedded } from "../../../dist/db/embedded.js";

const [seed] = process.argv.slice(2);
const db = await openEmbedded({ memory: true }, { seed });
await db.listen("news", { onMessage: () => {} });
const { rows } = await db.query("select count(*)::int as n from generate_series(1, 100000)");
process.stdout.write(`${String(rows[0].n)}\n`);
