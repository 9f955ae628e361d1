// hf.problems: what is wrong now, in sentences. The rules are those of the alerts in monitoring/: a queue that stands still, a
// kind without a worker, a recipient that does not fetch, work that fails, a janitor that does.
import type { InboxStats } from "../inbox/inbox.ts";
import { countOverdue, outcomesOf, unservedKinds } from "../store/stats/unserved.ts";
import type { Store } from "../store/sql.ts";
import type { HealthCheck } from "./health.ts";
import type { Queues } from "./queues.ts";

export const PROBLEM_CODES = [
  "no-worker",
  "stalled",
  "overdue-leases",
  "failing",
  "deaths",
  "inbox-stuck",
  "chore-failing",
  "loop-stopped",
  "paused",
] as const;

export interface Problem {
  code: (typeof PROBLEM_CODES)[number];
  /** A notice is worth knowing, and nothing is wrong. */
  level: "problem" | "notice";
  /** Part of a sentence: "queue imports has no worker". */
  message: string;
  /** What to do. */
  hint: string;
  /** What it is about: a queue, a kind, a recipient, a chore, as the code says. */
  about: string | null;
}

export interface Verdict {
  /** One sentence. */
  verdict: string;
  problems: Problem[];
}

export interface ProblemsInput {
  store: Store;
  health: HealthCheck;
  queues: Queues;
  inboxes(): Promise<InboxStats[]>;
}

/** Of the last ten minutes. */
const FAILING = { runs: 20, part: 0.1 } as const;
const SHOWN = 20;

export function makeProblems({ store, health, queues, inboxes }: ProblemsInput): () => Promise<Verdict> {
  return async () => {
    const [report, infos, unserved, overdue, lately, lastHour, recipients] = await Promise.all([
      health.check(),
      queues.list(),
      unservedKinds(store, SHOWN),
      countOverdue(store),
      outcomesOf(store, 10),
      outcomesOf(store, 60),
      inboxes(),
    ]);
    const withoutWorker = new Set(unserved.map(({ queue }) => queue));
    const problems: Problem[] = [
      ...[...withoutWorker].map((queue) =>
        noWorker(
          queue,
          unserved.flatMap((each) => (each.queue === queue ? [each.kind] : [])),
        ),
      ),
      ...report.stalledQueues.filter((queue) => !withoutWorker.has(queue)).map(stalled),
      ...(overdue > 0 ? [overdueLeases(overdue)] : []),
      ...lately.filter(({ runs, failures }) => runs >= FAILING.runs && failures / runs > FAILING.part).map(failing),
      ...lastHour.filter(({ deaths }) => deaths > 0).map(died),
      ...recipients.flatMap(({ recipient, stuck }) => (stuck ? [inboxStuck(recipient, stuck.message)] : [])),
      ...report.failingChores.map(({ chore, failures }) => choreFailing(chore, failures)),
      ...report.stopped.map(loopStopped),
      ...infos.filter(({ pausedAt }) => pausedAt !== null).map(({ queue, pausedBy }) => paused(queue, pausedBy)),
    ];
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
  return `All is well: ${counted(waiting, "job")} ready, ${running} running.${and}`;
}

const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;

const problem = (code: Problem["code"], about: string | null, message: string, hint: string): Problem => ({
  code,
  level: code === "paused" ? "notice" : "problem",
  message,
  hint,
  about,
});

const noWorker = (queue: string, kinds: string[]): Problem =>
  problem(
    "no-worker",
    queue,
    `queue ${queue} has no worker`,
    `Nobody works on ${kinds.slice(0, 5).join(", ")}: start a worker that has ${kinds.length === 1 ? "this kind" : "these kinds"}.`,
  );
const stalled = (queue: string): Problem =>
  problem(
    "stalled",
    queue,
    `queue ${queue} stands still`,
    "Its oldest job has been due for five minutes: look whether its workers are busy, hang, or are too few.",
  );
const overdueLeases = (count: number): Problem =>
  problem(
    "overdue-leases",
    null,
    `${counted(count, "lease")} ${count === 1 ? "is" : "are"} overdue`,
    "A worker died or cannot reach the database; the janitor hands its jobs over.",
  );
const failing = ({ queue, runs, failures }: { queue: string; runs: number; failures: number }): Problem =>
  problem(
    "failing",
    queue,
    `${Math.round((100 * failures) / runs)} % of the attempts in queue ${queue} fail`,
    "Look at the errors, grouped by what they have in common.",
  );
const died = ({ queue, deaths }: { queue: string; deaths: number }): Problem =>
  problem(
    "deaths",
    queue,
    `${counted(deaths, "job")} in queue ${queue} died in the last hour`,
    "Look at the dead jobs, mend the cause, and redrive them.",
  );
const inboxStuck = (recipient: string, message: string): Problem =>
  problem("inbox-stuck", recipient, `inbox ${recipient} ${message}`, "Look at the recipient: its parcels do not move.");
const choreFailing = (chore: string, failures: number): Problem =>
  problem(
    "chore-failing",
    chore,
    `chore ${chore} failed ${failures} times in a row`,
    "The janitor's history has its error.",
  );
const loopStopped = (loop: string): Problem =>
  problem("loop-stopped", loop, `${loop} has stopped in this process`, "Restart the process.");
const paused = (queue: string, by: string | null): Problem =>
  problem("paused", queue, `queue ${queue} is paused${by === null ? "" : ` by ${by}`}`, "Resume it when it may go on.");
