// The same with so many worker processes, which are ready but find nothing until the jobs come.
const JOBS = 100_000;

export const tuning = "throughput";

export async function run(bench) {
  for (let n = 0; n < bench.variant; n++) await bench.startProcess();
  await bench.enqueue(bench.portion(5_000));
  await bench.drain();
  const before = bench.handled;
  const start = performance.now();
  await bench.enqueue(bench.portion(JOBS));
  await bench.drain();
  return { jobsPerSecond: ((bench.handled - before) / (performance.now() - start)) * 1000 };
}
