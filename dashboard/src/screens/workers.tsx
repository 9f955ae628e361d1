// Who works, and which jobs each holds until when; drain one, stop one, take jobs away from one.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { now, plural, shortId, span } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { href } from "../router.ts";
import { Confirm, type Question } from "../ui/dialog.tsx";
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
                <Leases leases={orphans} of="a worker that is gone" onDone={data.again} />
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
  const isStopping = worker.stopAskedAt !== null;
  const isDraining = drainAskedAt !== null;
  const [isAsking, ask] = useState(false);
  const toggle = () =>
    void attempt(async () => {
      await call(isDraining ? "resumeWorker" : "drainWorker", { params: { id } });
      return isDraining ? `${name} takes jobs again` : `${name} takes no more jobs; what runs in it goes on`;
    }).then(onDone);
  const stop = () => {
    ask(false);
    void attempt(async () => {
      await call("stopWorker", { params: { id } });
      return `${name} ends when what runs in it has`;
    }).then(onDone);
  };
  const asked = drainAskedBy === null ? "" : `, asked by ${drainAskedBy}`;
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
            <span class="chip chip-warn">
              {isStopping ? "stopping" : "draining"}
              {asked}
            </span>
          ) : (
            <span class="chip chip-good">active</span>
          )}
          {may("operator") && !isStopping && (
            <>
              <button type="button" class="button button-small" onClick={toggle}>
                {isDraining ? "Resume" : "Drain"}
                <span class="sr-only"> {name}</span>
              </button>
              <button type="button" class="button button-small button-bad" onClick={() => ask(true)}>
                Stop<span class="sr-only"> {name}</span>
              </button>
            </>
          )}
          {isAsking && (
            <Confirm
              question={{
                title: `Stop ${name}?`,
                text: "It takes no more jobs. Those that run have its grace to end; what is left then runs elsewhere and uses no attempt. It does not come back by itself: whoever runs it has to start it again.",
                yes: "Stop the worker",
                isDangerous: true,
              }}
              onClose={() => ask(false)}
              onYes={stop}
            />
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
      {leases.length > 0 && <Leases leases={leases} of={name} onDone={onDone} />}
    </Panel>
  );
}

const SHOWN = 8;

const question = (lease: Lease, of: string): Question => {
  const them = lease.jobIds.length === 1 ? "this job" : `these ${lease.jobIds.length} jobs`;
  return {
    title: `Release ${them}?`,
    text: `They are taken away from ${of} and run again, elsewhere or there, without using an attempt. Whatever a handler still does with ${them} is refused; what it did outside the database stays done.`,
    yes: "Release",
    isDangerous: true,
  };
};

function Leases({ leases, of, onDone }: { leases: Lease[]; of: string; onDone(): void }) {
  const [asked, ask] = useState<Lease | null>(null);
  const release = ({ jobIds }: Lease) => {
    ask(null);
    void attempt(async () => {
      for (const id of jobIds) await call("releaseJob", { params: { id } });
      return `${plural(jobIds.length, "job")} released`;
    }).then(onDone);
  };
  return (
    <>
      <LeaseList leases={leases} onRelease={may("operator") ? ask : undefined} />
      {asked && <Confirm question={question(asked, of)} onClose={() => ask(null)} onYes={() => release(asked)} />}
    </>
  );
}

function LeaseList({ leases, onRelease }: { leases: Lease[]; onRelease: ((lease: Lease) => void) | undefined }) {
  return (
    <ul class="leases">
      {leases.map((lease, index) => (
        <li key={`${lease.expiresAt} ${lease.jobIds[0] ?? index}`}>
          <Countdown lease={lease} />
          <span class="row row-tight">
            {lease.alone && <span class="chip chip-warn">alone: a suspect</span>}
            <span>{lease.kinds.join(", ")}</span>
            {lease.jobIds.slice(0, SHOWN).map((id) => (
              <a key={id} class="mono" href={href(["jobs", id])}>
                {shortId(id)}
              </a>
            ))}
            {lease.jobIds.length > SHOWN && (
              <span class="quiet">and {plural(lease.jobIds.length - SHOWN, "more job")}</span>
            )}
            {onRelease && (
              <button type="button" class="button button-small" onClick={() => onRelease(lease)}>
                Release<span class="sr-only"> {lease.jobIds.map(shortId).slice(0, SHOWN).join(", ")}</span>
              </button>
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
