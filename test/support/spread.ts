// The order of the test files. Some mostly wait (for leases to run out, for processes that were killed), most others compute. By
// size alone, which is what vitest goes by, the small files that wait come together at the end, and the processor idles:
// here they are spread among the others, and the last ones are short.
import { BaseSequencer, type TestSpecification } from "vitest/node";

const WAITS = /\/test\/(crash|long)\/|\/[\w-]*(storm|faults|outage|away|crash|process|packed|image)\.test\.ts$/;
/** How far into the others the last of those that wait begins. */
const SPREAD = 0.8;

export class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const waiting = sorted.filter(({ moduleId }) => WAITS.test(moduleId));
    const others = sorted.filter(({ moduleId }) => !WAITS.test(moduleId));
    const places = new Map<TestSpecification, number>();
    for (const [index, file] of waiting.entries())
      places.set(file, (index * others.length * SPREAD) / waiting.length - 0.5);
    for (const [index, file] of others.entries()) places.set(file, index);
    return sorted.toSorted((one, other) => places.get(one)! - places.get(other)!);
  }
}
