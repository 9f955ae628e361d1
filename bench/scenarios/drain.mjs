// A hundred thousand jobs are waiting when the worker starts; the time until the last handler has begun.
const JOBS = 100_000;

export const tuning = "throughput";

export async function run(bench) {
  await bench.enqueue(bench.portion(JOBS));
  const start = performance.now();
  await bench.startWorker();
  await bench.drain();
  return { jobsPerSecond: (bench.handled / (performance.now() - start)) * 1000 };
}
