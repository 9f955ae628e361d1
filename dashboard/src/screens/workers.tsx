// Who works, and which jobs each holds until when.
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { now, plural, shortId, span } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { href } from "../router.ts";
import { Ago, Empty, Loaded, Panel, Screen } from "../ui/parts.tsx";

type Worker = Output<"listWorkers">["workers"][number];
type Lease = Worker["leases"][number];

const SILENT_MS = 60_000;

export function WorkersScreen() {
  const data = useData("workers", (signal) => call("listWorkers", { signal }));
  return (
    <Screen title="Workers">
      <Loaded data={data}>
        {({ workers, orphans }) => (
          <>
            {orphans.length > 0 && (
              <Panel title="Leases without a worker">
                <p class="pad-sides">The worker is gone; the janitor hands these jobs over when the lease is over.</p>
                <Leases leases={orphans} />
              </Panel>
            )}
            {workers.length === 0 ? (
              <Empty title="No worker is there.">
                <p>
                  Start one: <code>npx holdfast worker</code>, or <code>hf.work([…])</code> in your program.
                </p>
              </Empty>
            ) : (
              workers.map((worker) => <One key={worker.id} worker={worker} onDone={data.again} />)
            )}
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function One({ worker, onDone }: { worker: Worker; onDone(): void }) {
  const { id, name, kinds, concurrency, running, startedAt, silentMs, leases, drainAskedAt, drainAskedBy } = worker;
  const isDraining = drainAskedAt !== null;
  const toggle = () =>
    void attempt(async () => {
      await call(isDraining ? "resumeWorker" : "drainWorker", { params: { id } });
      return isDraining ? `${name} takes jobs again` : `${name} takes no more jobs; what runs in it goes on`;
    }).then(onDone);
  const isSilent = silentMs > SILENT_MS;
  const words = `${running} of ${concurrency} slots busy`;
  return (
    <Panel
      title={name}
      aside={
        <span class="row row-tight">
          {isSilent ? (
            <span class="chip chip-bad">silent for {span(silentMs)}</span>
          ) : isDraining ? (
            <span class="chip chip-warn">draining{drainAskedBy === null ? "" : `, asked by ${drainAskedBy}`}</span>
          ) : (
            <span class="chip chip-good">active</span>
          )}
          {may("operator") && (
            <button type="button" class="button button-small" onClick={toggle}>
              {isDraining ? "Resume" : "Drain"}
              <span class="sr-only"> {name}</span>
            </button>
          )}
        </span>
      }
    >
      <dl class="facts">
        <div>
          <dt>Slots</dt>
          <dd>
            <meter class="meter" min={0} max={concurrency} value={running} aria-label={words} /> {words}
          </dd>
        </div>
        <div>
          <dt>Started</dt>
          <dd>
            <Ago at={startedAt} />
          </dd>
        </div>
        <div>
          <dt>Last beat</dt>
          <dd>
            <Ago at={worker.beatAt} />
          </dd>
        </div>
        <div>
          <dt>Kinds</dt>
          <dd class="wrap">{kinds.join(", ")}</dd>
        </div>
      </dl>
      {leases.length > 0 && <Leases leases={leases} />}
    </Panel>
  );
}

const SHOWN = 8;

function Leases({ leases }: { leases: Lease[] }) {
  return (
    <ul class="leases">
      {leases.map((lease, index) => (
        <li key={`${lease.expiresAt} ${lease.jobIds[0] ?? index}`}>
          <Countdown lease={lease} />
          <span class="row row-tight">
            {lease.alone && <span class="chip chip-warn">alone: a suspect</span>}
            {lease.jobIds.slice(0, SHOWN).map((id) => (
              <a key={id} class="mono" href={href(["jobs", id])}>
                {shortId(id)}
              </a>
            ))}
            {lease.jobIds.length > SHOWN && (
              <span class="quiet">and {plural(lease.jobIds.length - SHOWN, "more job")}</span>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Countdown({ lease: { expiresAt, leaseMs } }: { lease: Lease }) {
  const left = Date.parse(expiresAt) - now.value;
  const part = Math.max(0, Math.min(1, left / leaseMs));
  const words = left < 0 ? `overdue by ${span(-left)}` : `${span(left)} of ${span(leaseMs)} left`;
  return (
    <span class="countdown">
      <span class="countdown-track" aria-hidden="true">
        <span class={`countdown-left${part < 0.34 ? " countdown-short" : ""}`} style={{ width: `${100 * part}%` }} />
      </span>
      <span class={left < 0 ? "bad" : "quiet"}>{words}</span>
    </span>
  );
}
