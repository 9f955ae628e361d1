// Loaded before everything else, in every thread of a process: its time of day is off by as many milliseconds as the file
// WRONG_CLOCK says, and can be set while it runs. Spans are not: no machine's monotonic clock jumps.
const { readFileSync } = require("node:fs");

const RealDate = Date;
const realNow = Date.now;
let off = 0;
let readAt = -Infinity;

function now() {
  if (performance.now() - readAt > 10) {
    readAt = performance.now();
    off = Number(readFileSync(process.env.WRONG_CLOCK, "utf8"));
  }
  return realNow() + off;
}

globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(now());
    else super(...given);
  }
  static now = now;
};
