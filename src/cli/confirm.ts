// Asks before something is gone: on a terminal with a question, elsewhere by refusing until --yes is given.
import { createInterface } from "node:readline/promises";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

export async function confirm(question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) {
    throw new Problem(`${question} Nobody is there to answer.`, "Give --yes to do it without asking.", EXIT.usage);
  }
  const asking = createInterface({ input: stdin, output: stderr });
  try {
    const answer = await asking.question(`${question} [y/N] `);
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    asking.close();
  }
  throw new Problem("Nothing was done.", "Answer y, or give --yes.", EXIT.failed);
}
