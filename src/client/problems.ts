// hf.problems: what is wrong now, in one sentence, and each of it with what to do.
import { makeRules, type Problem, type RulesInput } from "./rules.ts";

/** What `hf.problems()` gives: what is wrong now, and what to do about it. */
export interface ProblemReport {
  /** One sentence. */
  verdict: string;
  problems: Problem[];
}

export function makeProblems(input: RulesInput): () => Promise<ProblemReport> {
  return async () => {
    const [infos, ...found] = await Promise.all([input.queues.list(), ...makeRules(input).map((rule) => rule.find())]);
    const problems = found.flat();
    const waiting = infos.reduce((sum, { ready }) => sum + ready, 0);
    const running = infos.reduce((sum, info) => sum + info.running, 0);
    return { verdict: sentence(problems, waiting, running), problems };
  };
}

function sentence(all: readonly Problem[], waiting: number, running: number): string {
  const problems = all.filter(({ level }) => level === "problem");
  if (problems.length > 0) {
    const told = problems.slice(0, 3).map(({ message }) => message);
    const more = problems.length > told.length ? `; and ${problems.length - told.length} more` : "";
    return `${problems.length === 1 ? "1 problem" : `${problems.length} problems`}: ${told.join("; ")}${more}.`;
  }
  const notices = all.map(({ message }) => message);
  const and = notices.length === 0 ? "" : ` Note: ${notices.slice(0, 2).join("; ")}.`;
  if (waiting === 0 && running === 0) return `All is well: nothing waits.${and}`;
  return `All is well: ${waiting} ${waiting === 1 ? "job" : "jobs"} ready, ${running} running.${and}`;
}
