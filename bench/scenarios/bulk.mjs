// One caller enqueues a thousand jobs per call, without a worker.
/** They are left where they are: working them off would take longer than the measurement. */
export const isLeftUndone = true;
export const tuning = "throughput";

export async function run(bench) {
  await bench.enqueue(5_000);
  const before = bench.enqueued;
  const start = performance.now();
  while (performance.now() - start < bench.measureMs) await bench.contender.enqueueMany(bench.chunk());
  const rowsPerSecond = ((bench.enqueued - before) / (performance.now() - start)) * 1000;
  return { rowsPerSecond };
}
