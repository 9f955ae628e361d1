// One job: how it stands, what happened in each attempt, why it failed, what it has finished, what it carries.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { bytes, exact, plural, shortId } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { href } from "../router.ts";
import { Badge } from "../ui/badge.tsx";
import { Confirm, type Question } from "../ui/dialog.tsx";
import { Json } from "../ui/json.tsx";
import { Ago, At, Copy, Empty, Loaded, Panel, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { GroupDialog } from "./error-group.tsx";
import { ErrorChain, type Failure } from "./error-chain.tsx";
import { Diagram } from "./diagram.tsx";
import { Timeline } from "./timeline.tsx";

type Job = Output<"readJob">;

export function JobScreen({ id }: { id: string }) {
  const data = useData(`job ${id}`, (signal) => call("readJob", { signal, params: { id } }));
  const job = data.value;
  return (
    <Screen
      title={job?.kind ?? "Job"}
      lead={
        job && (
          <div class="row">
            <Badge job={job} />
            <span class="quiet mono wrap">{job.id}</span>
          </div>
        )
      }
      actions={job && <Actions job={job} onDone={data.again} />}
    >
      <Loaded data={data}>{(found) => <Whole job={found} />}</Loaded>
    </Screen>
  );
}

function Whole({ job }: { job: Job }) {
  return (
    <>
      {job.lastError && job.status !== "done" && <Why job={job} error={job.lastError} />}
      {job.progress && <Progress job={job} />}
      <Facts job={job} />
      <Panel title="States">
        <Diagram job={job} />
      </Panel>
      <Panel title="Attempts">
        <Timeline job={job} />
      </Panel>
      {job.notes.length > 0 && <Notes job={job} />}
      <div class="two">
        <Panel title="Payload" aside={<Copy text={job.payloadText} label="Copy" />}>
          <Json text={job.payloadText} label="Payload" />
        </Panel>
        <Panel title="Result">
          {job.resultText === null ? (
            <Empty title={job.status === "done" ? "It returned nothing." : "None yet."} />
          ) : (
            <Json text={job.resultText} label="Result" />
          )}
        </Panel>
      </div>
    </>
  );
}

const REASONS: Record<string, string> = {
  crashed: "It killed its process, alone, three times.",
  timeout: "It took longer than its kind may.",
  "invalid-payload": "Its payload does not fit the kind’s schema.",
  fatal: "The handler said that trying again cannot help.",
  exhausted: "Its attempts are used up.",
};

function whyDead({ lastError, attempt: used, maxAttempts }: Job): string {
  const known = lastError?.reason === undefined ? undefined : REASONS[lastError.reason];
  return known ?? (used >= maxAttempts ? `All ${plural(maxAttempts, "attempt")} failed.` : "It was given up.");
}

function Why({ job, error }: { job: Job; error: Failure }) {
  const [isAsking, ask] = useState(false);
  const group = { status: "dead", kind: job.kind, fingerprint: error.fingerprint ?? error.reason ?? "unknown" };
  const others = useData(`same ${JSON.stringify(group)}`, (signal) =>
    call("countJobs", { signal, query: group }),
  ).value;
  return (
    <Panel
      title={job.status === "dead" ? "Why it is dead" : "Last error"}
      aside={
        <span class="row">
          <a href={href(["jobs"], { q: `kind:${job.kind} fingerprint:${group.fingerprint}` })}>Same error</a>
          {may("operator") && others !== undefined && others.count > 0 && (
            <button type="button" class="button button-small button-main" onClick={() => ask(true)}>
              Redrive all {exact(others.count)}
              {others.more ? "+" : ""} like this
            </button>
          )}
        </span>
      }
    >
      {job.status === "dead" && <p class="pad-sides">{whyDead(job)}</p>}
      <ErrorChain error={error} />
      {isAsking && (
        <GroupDialog
          group={{ ...job, ...error, fingerprint: group.fingerprint, lastJobId: job.id }}
          verb="retry"
          onClose={() => ask(false)}
          onDone={() => ask(false)}
        />
      )}
    </Panel>
  );
}

function Progress({ job: { progress, status } }: { job: Job }) {
  if (!progress) return null;
  const { done, total, note, at } = progress;
  const words = `${exact(done)}${total === null ? "" : ` of ${exact(total)}`}${note ? ` ${note}` : ""}`;
  return (
    <Panel
      title="Progress"
      aside={<span class="quiet">{status === "running" ? <Ago at={at} /> : "when it last said so"}</span>}
    >
      <div class="pad-sides">
        {total !== null && (
          <progress class="progress" max={total} value={done} aria-label={words}>
            {words}
          </progress>
        )}
        <p>{words}</p>
      </div>
    </Panel>
  );
}

function Facts({ job }: { job: Job }) {
  const facts: [string, preact.ComponentChildren][] = [
    ["Queue", <a href={href(["queues", job.queue])}>{job.queue}</a>],
    ["Attempts", `${job.attempt} of ${job.maxAttempts}, claimed ${plural(job.claimCount, "time")}`],
    ["Enqueued", <At at={job.createdAt} />],
    [job.startedAt === null || job.status === "retrying" ? "Due" : "Was due", <At at={job.runAt} />],
    ["Started", <At at={job.startedAt} />],
    ["Ended", <At at={job.finishedAt} />],
    ["Priority", String(job.priority)],
  ];
  if (job.key !== null)
    facts.push(["Key", <a href={href(["jobs"], { q: `key:"${job.key}" kind:${job.kind}` })}>{job.key}</a>]);
  if (job.group !== null)
    facts.push(["Group", <a href={href(["jobs"], { q: `group:"${job.group}"` })}>{job.group}</a>]);
  if (job.batchId !== null)
    facts.push(["Item of", <a href={href(["batches", job.batchId])}>batch {shortId(job.batchId)}</a>]);
  if (job.coalesce !== null) facts.push(["Coalesce", job.coalesce]);
  if (job.leaseExpiresAt !== null) facts.push(["Lease ends", <Ago at={job.leaseExpiresAt} ahead />]);
  if (job.cancelRequestedAt !== null) facts.push(["Asked to end", <Ago at={job.cancelRequestedAt} />]);
  return (
    <dl class="facts panel">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const SORTS = { step: "Step", chunks: "Chunks", checkpoint: "Checkpoint", generation: "Generation" } as const;

function Notes({ job }: { job: Job }) {
  return (
    <Panel
      title="Checkpoints"
      aside={
        <span class="quiet">
          {job.finishedAt === null ? "the next attempt goes on from here" : "what was finished on the way"}
        </span>
      }
    >
      <Table<Job["notes"][number]>
        caption="What its runs have finished"
        rows={job.notes}
        keyOf={({ sort, name }) => `${sort} ${name}`}
        columns={[
          plain("What", ({ sort }) => SORTS[sort]),
          plain("Name", ({ name }) => name, "wide"),
          plain(
            "Value",
            ({ text, size }) => (
              <details>
                <summary>{bytes(size)}</summary>
                <Json text={text} label="Value" />
              </details>
            ),
            "wide",
          ),
          plain("Saved", ({ writtenAt }) => <Ago at={writtenAt} />, "figure"),
        ]}
      />
    </Panel>
  );
}

const QUESTIONS: Record<"cancel" | "discard" | "release", Question> = {
  release: {
    title: "Release this job?",
    text: "It is taken away from its worker and runs again, elsewhere or there, without using an attempt. Whatever its handler still does with it is refused; what it did outside the database stays done.",
    yes: "Release",
    isDangerous: true,
  },
  cancel: {
    title: "Cancel this job?",
    text: "If it waits, it ends now. If it runs, its handler is told to stop, and no retry follows.",
    yes: "Cancel the job",
    isDangerous: true,
  },
  discard: {
    title: "Discard this job?",
    text: "It leaves the list of dead jobs. It stays readable until its retention is over.",
    yes: "Discard",
    isDangerous: true,
  },
};

function Actions({ job, onDone }: { job: Job; onDone(): void }) {
  const [asked, ask] = useState<"cancel" | "discard" | "release" | null>(null);
  const params = { id: job.id };
  const run = (work: () => Promise<string>) => {
    ask(null);
    void attempt(work).then(onDone);
  };
  const isDead = job.state === "dead" && job.finishedAt === null;
  const isOpen = job.state === "pending" || job.state === "running";
  const verb = isDead ? "retry" : isOpen ? "cancel" : "show";
  return (
    <>
      <Copy text={location.href} label="Link" />
      <Copy text={`holdfast jobs ${verb} ${job.id}`} label="Command" />
      {may("operator") && isDead && (
        <>
          <button type="button" class="button" onClick={() => ask("discard")}>
            Discard
          </button>
          <button
            type="button"
            class="button button-main"
            onClick={() => run(async () => (await call("retryJob", { params }), `Job ${shortId(job.id)} runs again`))}
          >
            Retry now
          </button>
        </>
      )}
      {may("operator") && job.state === "running" && (
        <button type="button" class="button" onClick={() => ask("release")}>
          Release
        </button>
      )}
      {may("operator") && isOpen && job.cancelRequestedAt === null && (
        <button type="button" class="button button-bad" onClick={() => ask("cancel")}>
          Cancel
        </button>
      )}
      {may("operator") && (
        <a class="button" href={href(["enqueue"], { kind: job.kind, like: job.id })}>
          Duplicate
        </a>
      )}
      {asked && (
        <Confirm
          question={QUESTIONS[asked]}
          onClose={() => ask(null)}
          onYes={() =>
            run(async () => {
              if (asked === "release") {
                await call("releaseJob", { params });
                return "The job waits for its next run";
              }
              if (asked === "discard") {
                await call("discardJob", { params });
                return "The job is put away";
              }
              const { cancelRequested } = await call("cancelJob", { params });
              return cancelRequested ? "Its handler is told to stop" : "The job is cancelled";
            })
          }
        />
      )}
    </>
  );
}
