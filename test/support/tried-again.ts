// In continuous integration a test that measures time on a shared machine may be tried again (vitest.config.ts). This says which
// ones were: at the end, where it is seen. Where no time is measured nothing may be: a race that is lost now and then is a fault.
import type { Reporter, TestCase } from "vitest/node";

const NEVER = /^test\/(house|job|model|race|shared|store)\//;

export class TriedAgain implements Reporter {
  readonly #names: string[] = [];
  #isWrong = false;

  onTestCaseResult(test: TestCase): void {
    if (!test.diagnostic()?.flaky) return;
    const file = test.module.relativeModuleId;
    const isWrong = NEVER.test(file);
    this.#isWrong ||= isWrong;
    this.#names.push(`  ${file}: ${test.fullName}${isWrong ? " (measures no time: a failure)" : ""}`);
  }

  onTestRunEnd(): void {
    if (this.#names.length === 0) return;
    process.stdout.write(`\nPassed only when tried again:\n${this.#names.join("\n")}\n`);
    if (this.#isWrong) process.exitCode = 1;
  }
}
