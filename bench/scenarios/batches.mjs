// A batch of a million items, created from a stream and worked off, and one of ten thousand before and after it: an item must
// not cost more because its batch is large.
const [SMALL, HUGE] = [10_000, 1_000_000];

export const tuning = "throughput";

export async function run({ contender }) {
  await contender.runBatch(SMALL); // warm
  const before = await contender.runBatch(SMALL);
  const huge = await contender.runBatch(HUGE);
  const after = await contender.runBatch(SMALL);
  return {
    itemsPerSecond: huge.perSecond,
    createdPerSecond: huge.createdPerSecond,
    share: huge.perSecond / ((before.perSecond + after.perSecond) / 2),
  };
}
