// So many callers, each awaits its own single enqueue, without a worker; then the jobs are worked off and checked.
export const tuning = "enqueue";

export async function run(bench) {
  const callersFor = (ms) => {
    const end = performance.now() + ms;
    const caller = async () => {
      while (performance.now() < end) await bench.contender.enqueueOne(bench.payload());
    };
    return Promise.all(Array.from({ length: bench.variant }, caller));
  };
  await callersFor(300);
  const before = bench.enqueued;
  const start = performance.now();
  await callersFor(bench.measureMs);
  const enqueuesPerSecond = ((bench.enqueued - before) / (performance.now() - start)) * 1000;
  await bench.startWorker();
  await bench.drain();
  return { enqueuesPerSecond };
}
