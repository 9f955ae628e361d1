// Steady work on the embedded database, in a folder of its own.
export { run, tuning } from "./steady.mjs";
