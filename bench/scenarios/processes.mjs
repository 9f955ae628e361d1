// The same with so many worker processes, which are ready but find nothing until the jobs come.
const JOBS = 100_000;
const WARM_UP_JOBS = 40_000;

export const tuning = "throughput";

export async function run(bench) {
  for (let n = 0; n < bench.variant; n++) await bench.startProcess();
  // Each of them compiles what it runs, on the same two cores: that is not what is asked here.
  await bench.enqueue(bench.portion(WARM_UP_JOBS));
  await bench.drain();
  const before = bench.handled;
  const start = performance.now();
  await bench.enqueue(bench.portion(JOBS));
  await bench.drain();
  return { jobsPerSecond: ((bench.handled - before) / (performance.now() - start)) * 1000 };
}
