// All queues: what each holds, for how long the oldest waits, whether it keeps up.
import { useState } from "preact/hooks";
import { call } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count, now, shortSpan, span } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { href } from "../router.ts";
import { Spark } from "../ui/chart.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Empty, Loaded, Screen, Segments } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { depthParts, type Queue } from "./queue-parts.tsx";

const MINUTES = 15;

export function QueuesScreen() {
  const data = useData("queues and rates", async (signal) => {
    const query = { from: new Date(Date.now() - MINUTES * 60_000).toISOString() };
    const [{ queues }, { runs, depths }, { problems }] = await Promise.all([
      call("listQueues", { signal }),
      call("readStats", { signal, query }),
      call("readOverview", { signal }),
    ]);
    return { queues, runs, depths, problems, until: Date.now() };
  });
  return (
    <Screen title="Queues">
      <Loaded data={data}>
        {({ queues, runs, depths, problems, until }) => {
          const rates = ratesOf(runs, until);
          const alone = new Set(problems.flatMap(({ code, about }) => (code === "no-worker" && about ? [about] : [])));
          return queues.length === 0 ? (
            <Empty title="No queue had a job in the last two days.">
              <p>A queue is there as soon as a job is in it.</p>
            </Empty>
          ) : (
            <Table<Queue>
              caption="Queues"
              rows={queues}
              keyOf={({ queue }) => queue}
              columns={[
                plain(
                  "Queue",
                  ({ queue, pausedAt }) => (
                    <>
                      <a href={href(["queues", queue])} data-row>
                        {queue}
                      </a>{" "}
                      {pausedAt && <span class="chip chip-warn">paused</span>}
                      {alone.has(queue) && <span class="chip chip-bad">no worker</span>}
                    </>
                  ),
                  "wide",
                ),
                plain("Jobs", (queue) => <Segments label={queue.queue} parts={depthParts(queue)} />),
                plain("Ready", ({ ready, estimated }) => `${estimated ? "≈ " : ""}${count(ready)}`, "figure"),
                plain("Oldest", (queue) => <Oldest queue={queue} />, "figure"),
                plain("Running", ({ running }) => count(running), "figure"),
                plain("Retrying", ({ retrying }) => count(retrying), "figure"),
                plain("Scheduled", ({ scheduled }) => count(scheduled), "figure"),
                plain(
                  "Dead",
                  ({ dead, queue }) =>
                    dead > 0 ? (
                      <a class="bad" href={href(["jobs"], { q: `status:dead queue:${queue}` })}>
                        {count(dead)}
                      </a>
                    ) : (
                      "0"
                    ),
                  "figure",
                ),
                plain("Ended a minute", ({ queue }) => (
                  <Spark
                    values={rates.get(queue) ?? [0, 0]}
                    label={`${queue}: ${(rates.get(queue) ?? [0]).at(-2) ?? 0} ended in the last whole minute`}
                  />
                )),
                plain(
                  "Empty in",
                  (queue) => emptyIn(queue, rates.get(queue.queue), readyBefore(depths, queue.queue, until)),
                  "figure",
                ),
                may("operator") && plain("Do", (queue) => <PauseButton queue={queue} onDone={data.again} />, "acts"),
              ]}
            />
          );
        }}
      </Loaded>
    </Screen>
  );
}

type Runs = { at: string; queue: string; outcome: string; runs: number }[];

/** Ended runs of each minute, the newest last. */
function ratesOf(runs: Runs, until: number): Map<string, number[]> {
  const rates = new Map<string, number[]>();
  const last = Math.floor(until / 60_000);
  for (const { at, queue, outcome, runs: many } of runs) {
    if (outcome === "retry" || outcome === "snooze") continue;
    const row = rates.get(queue) ?? Array.from({ length: MINUTES }, () => 0);
    const place = MINUTES - 1 - (last - Math.floor(Date.parse(at) / 60_000));
    if (place >= 0 && place < MINUTES) row[place]! += many;
    rates.set(queue, row);
  }
  return rates;
}

const BEFORE_MS = 5 * 60_000;

/** How many were ready five minutes ago: a queue keeps its last figure until its next. */
function readyBefore(
  depths: readonly { at: string; queue: string; ready: number }[],
  queue: string,
  until: number,
): number | undefined {
  return depths.findLast((depth) => depth.queue === queue && Date.parse(depth.at) <= until - BEFORE_MS)?.ready;
}

/** From what ended in the last five whole minutes, and from whether there are more than before: what comes in counts too. */
function emptyIn(
  { ready, pausedAt }: Pick<Queue, "ready" | "pausedAt">,
  rates: number[] | undefined,
  before: number | undefined,
): string {
  if (ready === 0) return "–";
  if (pausedAt) return "paused";
  const lately = (rates ?? []).slice(-6, -1);
  const ended = lately.reduce((sum, each) => sum + each, 0);
  if (ended === 0) return "stands still";
  // Not known for so long: as if nothing came in.
  const fewer = before === undefined ? ended : before - ready;
  return fewer <= 0 ? "growing" : shortSpan((ready / fewer) * BEFORE_MS);
}

export function Oldest({ queue: { oldestReadyAt, pausedAt } }: { queue: Queue }) {
  if (oldestReadyAt === null) return <span class="quiet">–</span>;
  const age = now.value - Date.parse(oldestReadyAt);
  return <span class={pausedAt ? "" : age > 300_000 ? "bad" : age > 60_000 ? "warn" : ""}>{span(age)}</span>;
}

export function PauseButton({
  queue: { queue, pausedAt },
  onDone,
}: {
  queue: Pick<Queue, "queue" | "pausedAt">;
  onDone(): void;
}) {
  const [isAsking, ask] = useState(false);
  const params = { queue };
  const act = (work: () => Promise<string>) => {
    ask(false);
    void attempt(work).then(onDone);
  };
  if (pausedAt) {
    return (
      <button
        type="button"
        class="button button-small button-main"
        onClick={() => act(async () => (await call("resumeQueue", { params }), `${queue} goes on`))}
      >
        Resume<span class="sr-only"> {queue}</span>
      </button>
    );
  }
  return (
    <>
      <button type="button" class="button button-small" onClick={() => ask(true)}>
        Pause<span class="sr-only"> {queue}</span>
      </button>
      {isAsking && (
        <Confirm
          question={{
            title: `Pause ${queue}?`,
            text: "No job of it starts any more, in any process. What runs goes on.",
            yes: "Pause",
          }}
          onClose={() => ask(false)}
          onYes={() => act(async () => (await call("pauseQueue", { params }), `${queue} is paused`))}
        />
      )}
    </>
  );
}
