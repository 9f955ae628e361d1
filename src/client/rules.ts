// What can be wrong with the work, rule by rule: the one place that says so. The overview's sentence is made of it, and the
// doctor's findings; the alerts in monitoring/ ask the same of the metrics.
import type { Inboxes } from "../inbox/inbox.ts";
import type { Chore } from "../job/define-chore.ts";
import { formatDuration } from "../shared/duration.ts";
import { readSuspects } from "../store/doctor/work-facts.ts";
import { databaseNow } from "../store/stats/database-clock.ts";
import { choreStates, countWorkers } from "../store/stats/gauges.ts";
import { countOverdue, outcomesOf, unservedKinds } from "../store/stats/unserved.ts";
import type { Store } from "../store/sql.ts";
import type { HealthCheck, HealthReport } from "./health.ts";
import type { QueueInfo, Queues } from "./queues.ts";

export const PROBLEM_CODES = [
  "no-worker",
  "nobody-works",
  "stalled",
  "overdue-leases",
  "failing",
  "deaths",
  "dead",
  "crashes",
  "inbox-stuck",
  "chore-failing",
  "chores-late",
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
  /** A command that helps; null: there is none. */
  command: string | null;
  /** What it is about: a queue, a kind, a recipient, a chore, as the code says. */
  about: string | null;
}

export interface RulesInput {
  store: Store;
  health: HealthCheck;
  queues: Queues;
  inboxes: Inboxes;
  chores(): readonly Chore[];
}

export interface Rule {
  /** The doctor's word for what it looks at. */
  check: string;
  /** What the doctor says if nothing is wrong. */
  well: string;
  find(): Promise<Problem[]>;
}

/** Of the last ten minutes. */
const FAILING = { runs: 20, part: 0.1 } as const;
const SHOWN = 20;
/** A chore that is so much later than its interval is looked after by nobody. */
const LATE_MS = 120_000;

/** For one look: rules that ask the same ask it once. */
export function makeRules({ store, health, queues, inboxes, chores }: RulesInput): Rule[] {
  const report = once<HealthReport>(() => health.check());
  const infos = once<QueueInfo[]>(() => queues.list());
  const lastHour = once(() => outcomesOf(store, 60));
  const withoutWorker = once(() => unservedKinds(store, SHOWN));
  return [
    {
      check: "workers",
      well: "what is due has a worker",
      async find() {
        const [unserved, { stalledQueues }, overdue, workers] = await Promise.all([
          withoutWorker(),
          report(),
          countOverdue(store),
          countWorkers(store),
        ]);
        const lonely = new Map<string, string[]>();
        for (const { queue, kind } of unserved) lonely.set(queue, [...(lonely.get(queue) ?? []), kind]);
        return [
          ...[...lonely].map(([queue, kinds]) => noWorker(queue, kinds)),
          ...(workers === 0 && lonely.size === 0 ? [nobodyWorks()] : []),
          ...stalledQueues.filter((queue) => !lonely.has(queue)).map(stalled),
          ...(overdue > 0 ? [overdueLeases(overdue)] : []),
        ];
      },
    },
    {
      check: "failures",
      well: "few attempts fail",
      async find() {
        const lately = await outcomesOf(store, 10);
        return lately
          .filter(({ runs, failures }) => runs >= FAILING.runs && failures / runs > FAILING.part)
          .map(failing);
      },
    },
    {
      check: "dead",
      well: "no dead jobs",
      async find() {
        const died = (await lastHour()).filter(({ deaths }) => deaths > 0);
        const stock = (await infos()).filter(({ queue, dead }) => dead > 0 && died.every((one) => one.queue !== queue));
        return [...died.map(deaths), ...stock.map(({ queue, dead }) => stillDead(queue, dead))];
      },
    },
    {
      check: "crashes",
      well: "no job is suspected of ending its process",
      find: async () => (await readSuspects(store)).map(crashes),
    },
    {
      check: "inboxes",
      well: "no recipient is stuck",
      async find() {
        const { inboxes: some } = await inboxes.list({ limit: 100 });
        return some.flatMap(({ recipient, stuck }) => (stuck ? [inboxStuck(recipient, stuck.message)] : []));
      },
    },
    {
      check: "janitor",
      well: "every chore on time",
      async find() {
        const { failingChores } = await report();
        return [...failingChores.map(choreFailing), ...(await lateChores(store, chores()))];
      },
    },
    {
      check: "loops",
      well: "every background loop is heard of",
      find: async () => health.live().stopped.map(loopStopped),
    },
    {
      check: "paused",
      well: "no queue is paused",
      find: async () =>
        (await infos()).flatMap(({ queue, pausedAt, pausedBy }) =>
          pausedAt === null ? [] : [paused(queue, pausedBy)],
        ),
    },
  ];
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => (asked ??= ask());
}

async function lateChores(store: Store, chores: readonly Chore[]): Promise<Problem[]> {
  const [states, now] = await Promise.all([choreStates(store), databaseNow(store)]);
  const late: string[] = [];
  for (const { name, everyMs, everywhere } of chores) {
    // Those of every process are known to that process only.
    if (everywhere) continue;
    const { failures = 0, succeededAt = null } = states.find(({ chore }) => chore === name) ?? {};
    if (failures > 0 || now.getTime() - (succeededAt?.getTime() ?? 0) <= 3 * everyMs + LATE_MS) continue;
    const ago = succeededAt && formatDuration(now.getTime() - succeededAt.getTime());
    late.push(ago === null ? `${name} never ran` : `${name} last succeeded ${ago} ago`);
  }
  return late.length === 0 ? [] : [choresLate(late)];
}

const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;

const make =
  (level: Problem["level"]) =>
  (
    code: Problem["code"],
    about: string | null,
    message: string,
    hint: string,
    command: string | null = null,
  ): Problem => ({ code, level, message, hint, command, about });
const problem = make("problem");
const notice = make("notice");

const noWorker = (queue: string, kinds: string[]): Problem =>
  problem(
    "no-worker",
    queue,
    `queue ${queue} has no worker`,
    `Nobody works on ${kinds.slice(0, 5).join(", ")}: start a worker that has ${kinds.length === 1 ? "this kind" : "these kinds"}.`,
    "holdfast worker",
  );
const nobodyWorks = (): Problem =>
  notice("nobody-works", null, "no worker is there; nothing waits for one", "Start one.", "holdfast worker");
const stalled = (queue: string): Problem =>
  problem(
    "stalled",
    queue,
    `queue ${queue} stands still`,
    "Its oldest job has been due for five minutes: look whether its workers are busy, hang, or are too few.",
    "holdfast workers",
  );
const overdueLeases = (count: number): Problem =>
  problem(
    "overdue-leases",
    null,
    `${counted(count, "lease")} ${count === 1 ? "is" : "are"} overdue`,
    "A worker died or cannot reach the database; the janitor of another hands its jobs over.",
    "holdfast worker",
  );
const failing = ({ queue, runs, failures }: { queue: string; runs: number; failures: number }): Problem =>
  problem(
    "failing",
    queue,
    `${Math.round((100 * failures) / runs)} % of the attempts in queue ${queue} fail`,
    "Look at the errors, grouped by what they have in common.",
    "holdfast errors",
  );
const deaths = ({ queue, deaths: count }: { queue: string; deaths: number }): Problem =>
  problem(
    "deaths",
    queue,
    `${counted(count, "job")} in queue ${queue} died in the last hour`,
    "Look at the dead jobs, mend the cause, and redrive them.",
    "holdfast dead",
  );
const stillDead = (queue: string, count: number): Problem =>
  notice(
    "dead",
    queue,
    `queue ${queue} has ${counted(count, "dead job")}`,
    "Mend the cause, then redrive or discard them.",
    "holdfast dead",
  );
const crashes = ({ kind, jobs, crashes: times }: { kind: string; jobs: number; crashes: number }): Problem =>
  notice(
    "crashes",
    kind,
    `${counted(jobs, "job")} of ${kind} ran in a process that died${times > 0 ? `; one of them ran alone then, ${counted(times, "time")}` : ""}`,
    "Look at their last error, and at the worker's memory limit. Three crashes alone make a job dead.",
  );
const inboxStuck = (recipient: string, message: string): Problem =>
  problem(
    "inbox-stuck",
    recipient,
    `inbox ${recipient} ${message}`,
    "Look at the recipient: its parcels do not move.",
    `holdfast inbox list ${recipient}`,
  );
const choreFailing = ({ chore, failures, error }: HealthReport["failingChores"][number]): Problem =>
  problem(
    "chore-failing",
    chore,
    `chore ${chore} failed ${counted(failures, "time")} in a row: ${error ?? "no reason"}`,
    "Mend that, and let it run.",
    `holdfast janitor run ${chore}`,
  );
const choresLate = (late: readonly string[]): Problem =>
  notice(
    "chores-late",
    null,
    `nobody keeps the house: ${late.slice(0, 3).join(", ")}${late.length > 3 ? ` and ${late.length - 3} more` : ""}`,
    "A worker does it while it runs, or hf.janitor.start() in any process.",
    "holdfast janitor run",
  );
const loopStopped = (loop: string): Problem =>
  problem("loop-stopped", loop, `${loop} has stopped in this process`, "Restart the process.");
const paused = (queue: string, by: string | null): Problem =>
  notice(
    "paused",
    queue,
    `queue ${queue} is paused${by === null ? "" : ` by ${by}`}`,
    "Resume it when it may go on.",
    `holdfast queues resume ${queue}`,
  );
