// Is it OK? One sentence, then how much, how fast, how long, what fails.
import { useMemo } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count, firstLine, now, shortSpan, span, took } from "../format.ts";
import { href, place, replaceQuery } from "../router.ts";
import { Chart, type Line } from "../ui/chart.tsx";
import { Icon } from "../ui/icon.tsx";
import { Ago, Card, Empty, Loaded, Panel, Screen, Segments } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { depthParts, type Queue } from "./queue-parts.tsx";

const RANGES = { "15m": 15, "1h": 60, "6h": 360, "24h": 1_440, "7d": 10_080 } as const;
type Range = keyof typeof RANGES;

export function useRange(): [Range, (range: Range) => void] {
  const asked = place.value.query.get("range") ?? "1h";
  const range = asked in RANGES ? (asked as Range) : "1h";
  return [range, (next) => replaceQuery({ range: next === "1h" ? undefined : next })];
}

export function Ranges({ range, choose }: { range: Range; choose(range: Range): void }) {
  return (
    <div class="tabs" role="group" aria-label="How far back">
      {(Object.keys(RANGES) as Range[]).map((each) => (
        <button key={each} type="button" class="tab" aria-pressed={each === range} onClick={() => choose(each)}>
          {each}
        </button>
      ))}
    </div>
  );
}

export const fromOf = (range: Range): string => new Date(Date.now() - RANGES[range] * 60_000).toISOString();

export function OverviewScreen() {
  const [range, choose] = useRange();
  const verdict = useData("overview", (signal) => call("readOverview", { signal }));
  const queues = useData("queues", (signal) => call("listQueues", { signal }));
  const workers = useData("workers", (signal) => call("listWorkers", { signal }));
  const chores = useData("chores", (signal) => call("listChores", { signal }));
  const errors = useData("errors 5", (signal) => call("listErrorGroups", { signal, query: { limit: 5 } }));
  return (
    <Screen title="Overview" actions={<Ranges range={range} choose={choose} />}>
      <Loaded data={verdict}>{(value) => <Verdict {...value} />}</Loaded>
      {queues.value && <Cards queues={queues.value.queues} workers={workers.value} chores={chores.value} />}
      <Charts range={range} />
      <div class="two">
        <Panel title="Queues" aside={<a href="#/queues">All queues</a>}>
          <Loaded data={queues}>{({ queues: all }) => <TopQueues queues={all} />}</Loaded>
        </Panel>
        <Panel title="Newest errors" aside={<a href="#/errors">All errors</a>}>
          <Loaded data={errors}>
            {({ errors: groups }) =>
              groups.length === 0 ? (
                <Empty title="Nothing failed in the last eight days." />
              ) : (
                <ul class="list">
                  {groups.map((group) => (
                    <li key={group.kind + group.fingerprint}>
                      <a class="list-link" href={href(["jobs", group.lastJobId])}>
                        <strong>{group.name}</strong> {firstLine(group.message)}
                      </a>
                      <span class="quiet">
                        {group.kind} · {count(group.seen[2] ?? 0)} in 24 h · <Ago at={group.lastSeenAt} />
                      </span>
                    </li>
                  ))}
                </ul>
              )
            }
          </Loaded>
        </Panel>
      </div>
    </Screen>
  );
}

type Problem = Output<"readOverview">["problems"][number];

function placeOf({ code, about }: Problem): string {
  switch (code) {
    case "deaths":
    case "dead":
      return "#/dead";
    case "failing":
      return "#/errors";
    case "overdue-leases":
    case "nobody-works":
      return "#/workers";
    case "crashes":
      return href(["jobs"], { q: `kind:${about ?? ""}` });
    case "inbox-stuck":
      return href(["inbox", about ?? undefined]);
    case "chore-failing":
    case "chores-late":
      return "#/janitor";
    case "loop-stopped":
      return "#/system";
    default:
      return href(["queues", about ?? undefined]);
  }
}

function Verdict({ verdict, problems }: Output<"readOverview">) {
  const isBad = problems.some(({ level }) => level === "problem");
  return (
    <section class={`verdict${isBad ? " verdict-bad" : ""}`} aria-label="Verdict">
      <p class="verdict-words" role="status">
        <Icon name={isBad ? "errors" : "done"} />
        <span>{verdict}</span>
      </p>
      {problems.length > 0 && (
        <ul class="problems">
          {problems.map((problem) => (
            <li key={problem.code + problem.about}>
              <a href={placeOf(problem)}>
                {problem.level === "notice" && "Note: "}
                {problem.message}
              </a>
              <span class="quiet">{problem.hint}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

interface CardsProps {
  queues: Output<"listQueues">["queues"];
  workers: Output<"listWorkers"> | undefined;
  chores: Output<"listChores"> | undefined;
}

function Cards({ queues, workers, chores }: CardsProps) {
  const sum = (figure: "ready" | "running" | "retrying" | "dead" | "scheduled") =>
    queues.reduce((all, queue) => all + queue[figure], 0);
  const oldest = queues.flatMap(({ oldestReadyAt, pausedAt }) =>
    oldestReadyAt && !pausedAt ? [Date.parse(oldestReadyAt)] : [],
  );
  const age = oldest.length === 0 ? null : now.value - Math.min(...oldest);
  const alive = workers?.workers.filter(({ silentMs }) => silentMs < 60_000) ?? [];
  const slots = alive.reduce((all, { concurrency }) => all + concurrency, 0);
  const busy = alive.reduce((all, { running }) => all + running, 0);
  const swept = chores?.chores.flatMap(({ succeededAt }) => (succeededAt ? [Date.parse(succeededAt)] : [])) ?? [];
  const failing = chores?.chores.filter(({ failures }) => failures > 0).length ?? 0;
  return (
    <div class="cards">
      <Card
        label="Ready"
        value={count(sum("ready"))}
        note={age === null ? "nothing waits" : `oldest ${span(age)}`}
        tone={age !== null && age > 300_000 ? "bad" : undefined}
        to={href(["jobs"], { q: "status:ready" })}
      />
      <Card
        label="Running"
        value={count(sum("running"))}
        note={`${count(sum("scheduled"))} scheduled`}
        to={href(["jobs"], { q: "status:running" })}
      />
      <Card
        label="Retrying"
        value={count(sum("retrying"))}
        tone={sum("retrying") > 0 ? "warn" : undefined}
        to={href(["jobs"], { q: "status:retrying" })}
      />
      <Card
        label="Dead"
        value={count(sum("dead"))}
        note={sum("dead") > 0 ? "need a person" : undefined}
        tone={sum("dead") > 0 ? "bad" : undefined}
        to="#/dead"
      />
      <Card
        label="Workers"
        value={workers ? String(alive.length) : "–"}
        note={`${busy} of ${slots} slots busy`}
        tone={workers && alive.length === 0 ? "bad" : undefined}
        to="#/workers"
      />
      <Card
        label="Janitor"
        value={swept.length === 0 ? "–" : `${shortSpan(now.value - Math.max(...swept))} ago`}
        note={failing > 0 ? `${failing} failing` : "last success"}
        tone={failing > 0 ? "bad" : undefined}
        to="#/janitor"
      />
    </div>
  );
}

export function Charts({ range, queue }: { range: Range; queue?: string }) {
  const data = useData(`charts ${range} ${queue ?? ""}`, async (signal) => {
    const query = { from: fromOf(range), queue };
    const [stats, latency] = await Promise.all([
      call("readStats", { signal, query }),
      call("readLatency", { signal, query }),
    ]);
    return { stats, latency, until: Date.now() };
  });
  return (
    <div class="two">
      <Panel title="Throughput">
        <Loaded data={data}>
          {({ stats, until }) => <Throughput runs={stats.runs} range={range} until={until} />}
        </Loaded>
      </Panel>
      <Panel title="Latency">
        <Loaded data={data}>
          {({ latency, until }) => <Latency points={latency.points} range={range} until={until} />}
        </Loaded>
      </Panel>
    </div>
  );
}

/** A job that is dead, and an item that is an error: neither is tried again by itself. */
const LINE_OF: Readonly<Record<string, string>> = {
  done: "done",
  again: "done",
  handed: "done",
  retry: "retried",
  dead: "failed",
  error: "failed",
};

function Throughput({ runs, range, until }: { runs: Output<"readStats">["runs"]; range: Range; until: number }) {
  const { at, lines } = useMemo(() => {
    // As in the roll-ups: hours for more than two days.
    const width = RANGES[range] > 2_880 ? 3_600 : 60;
    const step = Math.max(width, Math.ceil((RANGES[range] * 60) / 120 / width) * width);
    const last = Math.floor(until / 1_000 / step) * step;
    const first = Math.floor((until / 1_000 - RANGES[range] * 60) / step) * step;
    const times = Array.from({ length: (last - first) / step + 1 }, (_, n) => first + n * step);
    const rows: Record<string, number[]> = {
      done: times.map(() => 0),
      retried: times.map(() => 0),
      failed: times.map(() => 0),
    };
    for (const run of runs) {
      const slot = Math.floor((Date.parse(run.at) / 1_000 - first) / step);
      const row = rows[LINE_OF[run.outcome] ?? ""];
      // The last step is not over: a minute that has only begun would look like a fall.
      const seconds = slot === times.length - 1 ? Math.max(10, until / 1_000 - last) : step;
      if (row && slot >= 0 && slot < row.length) row[slot]! += run.runs / seconds;
    }
    const made: Line[] = [
      { name: "done", colour: "chart-1", values: rows["done"]!, isFilled: true },
      { name: "retried", colour: "chart-2", values: rows["retried"]! },
      { name: "failed for good", colour: "chart-3", values: rows["failed"]!, isDashed: true },
    ];
    return { at: times, lines: made };
  }, [runs, range]);
  return <Chart title="Runs a second" at={at} lines={lines} write={perSecond} />;
}

const perSecond = (value: number): string =>
  `${value >= 100 ? Math.round(value) : Number(value.toFixed(value < 1 ? 2 : 1))}/s`;

function Latency({ points, range, until }: { points: Output<"readLatency">["points"]; range: Range; until: number }) {
  const { at, lines } = useMemo(() => {
    const made: Line[] = [
      { name: "wait p50", colour: "chart-4", values: points.map(({ waitP50 }) => waitP50) },
      { name: "wait p95", colour: "chart-4", values: points.map(({ waitP95 }) => waitP95), isDashed: true },
      { name: "run p50", colour: "chart-1", values: points.map(({ runP50 }) => runP50) },
      { name: "run p95", colour: "chart-1", values: points.map(({ runP95 }) => runP95), isDashed: true },
    ];
    return { at: points.map((point) => Date.parse(point.at) / 1_000), lines: made };
  }, [points]);
  if (points.length === 0) return <Empty title="Nothing ran in this time." />;
  return (
    <Chart
      title="How long jobs waited and ran"
      at={at}
      lines={lines}
      write={took}
      span={[until / 1_000 - RANGES[range] * 60, until / 1_000]}
    />
  );
}

function TopQueues({ queues }: { queues: Output<"listQueues">["queues"] }) {
  const top = queues.toSorted((a, b) => b.ready + b.running + b.dead - (a.ready + a.running + a.dead)).slice(0, 6);
  if (top.length === 0) {
    return (
      <Empty title="No queue had a job yet.">
        <p>
          Enqueue one: <code>npx holdfast enqueue sample.hello '{'{"name":"Ada"}'}'</code>, or{" "}
          <a href="#/enqueue">here</a>.
        </p>
      </Empty>
    );
  }
  return (
    <Table<Queue>
      caption="The fullest queues"
      rows={top}
      keyOf={({ queue }) => queue}
      columns={[
        plain(
          "Queue",
          ({ queue, pausedAt }) => (
            <>
              <a href={href(["queues", queue])}>{queue}</a> {pausedAt && <span class="chip chip-warn">paused</span>}
            </>
          ),
          "wide",
        ),
        plain("Jobs", (queue) => <Segments label={queue.queue} parts={depthParts(queue)} />),
        plain("Ready", ({ ready }) => count(ready), "figure"),
        plain(
          "Oldest",
          ({ oldestReadyAt }) => (oldestReadyAt ? shortSpan(now.value - Date.parse(oldestReadyAt)) : "–"),
          "figure",
        ),
        plain("Dead", ({ dead }) => (dead > 0 ? <span class="bad">{count(dead)}</span> : "0"), "figure"),
      ]}
    />
  );
}
