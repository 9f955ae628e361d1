// Makes the embedded database's seed (an empty database as one file), so that a first start takes a second instead of
// several. Run by the build: node scripts/build-seed.mjs <target>.
import { Engine } from "../dist/db/embedded-engine.js";

await Engine.writeSeed(process.argv[2]);
