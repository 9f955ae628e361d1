// One queue: its figures over time, its kinds, what a job added now would get, who works on it.
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count, span, took } from "../format.ts";
import { may } from "../frame/me.ts";
import { href } from "../router.ts";
import { Card, Empty, Loaded, Panel, Screen, Segments } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { Charts, fromOf, Ranges, useRange } from "./overview.tsx";
import { depthParts } from "./queue-parts.tsx";
import { Oldest, PauseButton } from "./queues.tsx";

export function QueueScreen({ queue }: { queue: string }) {
  const [range, choose] = useRange();
  const data = useData(`queue ${queue} ${range}`, async (signal) => {
    const [{ queues }, { kinds: stats }, { kinds }, { workers }] = await Promise.all([
      call("listQueues", { signal }),
      call("readKindStats", { signal, query: { from: fromOf(range), queue } }),
      call("listKinds", { signal }),
      call("listWorkers", { signal }),
    ]);
    return {
      info: queues.find((each) => each.queue === queue),
      stats,
      kinds: kinds.filter((kind) => kind.queue === queue),
      workers,
    };
  });
  const info = data.value?.info;
  const jobs = (status: string) => href(["jobs"], { q: `status:${status} queue:${queue}` });
  return (
    <Screen
      title={`Queue ${queue}`}
      lead={
        info?.pausedAt ? (
          <span class="chip chip-warn">paused{info.pausedBy ? ` by ${info.pausedBy}` : ""}</span>
        ) : undefined
      }
      actions={
        <>
          <Ranges range={range} choose={choose} />
          {info && may("operator") && <PauseButton queue={info} onDone={data.again} />}
        </>
      }
    >
      <Loaded data={data}>
        {({ info: found }) =>
          found === undefined ? (
            <Empty title="No job was in this queue in the last two days." />
          ) : (
            <>
              <div class="cards">
                <Card
                  label="Ready"
                  value={count(found.ready)}
                  note={
                    <>
                      oldest <Oldest queue={found} />
                    </>
                  }
                  to={jobs("ready")}
                />
                <Card label="Running" value={count(found.running)} to={jobs("running")} />
                <Card
                  label="Retrying"
                  value={count(found.retrying)}
                  tone={found.retrying > 0 ? "warn" : undefined}
                  to={jobs("retrying")}
                />
                <Card label="Scheduled" value={count(found.scheduled)} to={jobs("scheduled")} />
                <Card
                  label="Dead"
                  value={count(found.dead)}
                  tone={found.dead > 0 ? "bad" : undefined}
                  to={jobs("dead")}
                />
              </div>
              <Segments label={queue} parts={depthParts(found)} />
            </>
          )
        }
      </Loaded>
      <Charts range={range} queue={queue} />
      <Loaded data={data}>
        {({ stats, kinds, workers }) => (
          <>
            <Panel title="Kinds">
              {stats.length === 0 ? <Empty title="Nothing ran here in this time." /> : <Kinds stats={stats} />}
            </Panel>
            <Panel title="What a job added now gets">
              {kinds.length === 0 ? (
                <Empty title="This server knows no kind of this queue." />
              ) : (
                <Inherited kinds={kinds} />
              )}
            </Panel>
            <Panel title="Workers" aside={<a href="#/workers">All workers</a>}>
              <WorkersOf
                workers={workers}
                kinds={new Set([...kinds.map(({ kind }) => kind), ...stats.map(({ kind }) => kind)])}
              />
            </Panel>
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function Kinds({ stats }: { stats: Output<"readKindStats">["kinds"] }) {
  return (
    <Table<Output<"readKindStats">["kinds"][number]>
      caption="What each kind came to"
      rows={stats}
      keyOf={({ kind }) => kind}
      columns={[
        plain("Kind", ({ kind }) => <a href={href(["jobs"], { q: `kind:${kind}` })}>{kind}</a>, "wide"),
        plain("Runs", ({ runs }) => count(runs), "figure"),
        plain(
          "Failed",
          ({ runs, failures }) => <span class={failures / runs > 0.1 ? "bad" : ""}>{percent(failures, runs)}</span>,
          "figure",
        ),
        plain("Dead", ({ deaths }) => (deaths > 0 ? <span class="bad">{count(deaths)}</span> : "0"), "figure"),
        plain("Wait p50", ({ waitP50 }) => took(waitP50), "figure"),
        plain("Wait p95", ({ waitP95 }) => took(waitP95), "figure"),
        plain("Run p50", ({ runP50 }) => took(runP50), "figure"),
        plain("Run p95", ({ runP95 }) => took(runP95), "figure"),
      ]}
    />
  );
}

const percent = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${Number(((100 * part) / whole).toFixed(1))} %`;

function Inherited({ kinds }: { kinds: Output<"listKinds">["kinds"] }) {
  return (
    <Table<Output<"listKinds">["kinds"][number]>
      caption="Settings of the kinds"
      rows={kinds}
      keyOf={({ kind }) => kind}
      columns={[
        plain("Kind", ({ kind }) => kind, "wide"),
        plain("Attempts", ({ attempts }) => String(attempts), "figure"),
        plain(
          "Pauses between",
          ({ backoffMs }) =>
            backoffMs
              .slice(0, 5)
              .map((ms) => (ms < 1_000 ? `${ms}ms` : span(ms)))
              .join(", ") + (backoffMs.length > 5 ? " …" : "") || "–",
        ),
        plain("Lease", ({ leaseMs }) => span(leaseMs), "figure"),
        plain("Beat", ({ leaseMs }) => took(leaseMs / 3), "figure"),
        plain(
          "Timeout",
          ({ timeoutMs, leaseMs }) => <span class={timeoutMs < leaseMs ? "bad" : ""}>{span(timeoutMs)}</span>,
          "figure",
        ),
      ]}
    />
  );
}

function WorkersOf({ workers, kinds }: { workers: Output<"listWorkers">["workers"]; kinds: Set<string> }) {
  const own = workers.filter((worker) => worker.kinds.some((kind) => kinds.has(kind)));
  if (own.length === 0) return <Empty title="No worker is there for its kinds." />;
  return (
    <Table<Output<"listWorkers">["workers"][number]>
      caption="Workers of this queue"
      rows={own}
      keyOf={({ id }) => id}
      columns={[
        plain("Worker", ({ name }) => name, "wide"),
        plain("Slots busy", ({ running, concurrency }) => `${running} of ${concurrency}`, "figure"),
        plain(
          "Heard of",
          ({ silentMs }) => <span class={silentMs > 60_000 ? "bad" : ""}>{span(silentMs)} ago</span>,
          "figure",
        ),
      ]}
    />
  );
}
