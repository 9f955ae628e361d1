// A contender's worker in a process of its own: tells its parent which jobs it handled and when, until it is told to stop.
const [contenderName, tuning, url] = process.argv.slice(2);
const { setup } = await import(`./contenders/${contenderName}.mjs`);
const contender = await setup(url, tuning);
let some = [];

function tell() {
  process.send({ handled: some });
  some = [];
}

await contender.startWorker(({ n }) => {
  // Told after the handlers of this turn, so that telling is on nobody's way.
  if (some.length === 0) setImmediate(tell);
  some.push([n, String(process.hrtime.bigint())]);
});
process.on("message", async () => {
  await contender.stop();
  process.exit(0);
});
process.on("disconnect", () => process.exit(1));
process.send({ ready: true });
