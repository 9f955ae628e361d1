// Jobs, newest first: filtered by what stands in the address, page by page, and acted on one by one or all that match.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { STATUSES, toFilter, tokensOf, toQuery, withToken } from "../filter.ts";
import { count, exact, firstLine, plural, shortId, took } from "../format.ts";
import { may } from "../frame/me.ts";
import { href, place, replaceQuery } from "../router.ts";
import { Badge } from "../ui/badge.tsx";
import { FilterBar } from "../ui/filter-bar.tsx";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { ActDialog, type Verb } from "./act.tsx";
import { SavedViews } from "./saved-views.tsx";

type Job = Output<"listJobs">["jobs"][number];

const PAGE = 50;

export function JobsScreen() {
  const text = place.value.query.get("q") ?? "";
  const cursor = place.value.query.get("before") ?? undefined;
  const { query, wrong } = toQuery(text);
  const key = JSON.stringify([query, cursor]);
  const data = useData(key, (signal) => call("listJobs", { signal, query: { ...query, limit: PAGE, cursor } }));
  const filter = (next: string) => replaceQuery({ q: next, before: undefined });
  const status = tokensOf(text).find(({ name }) => name === "status")?.value;
  return (
    <Screen
      title="Jobs"
      actions={
        may("operator") && (
          <a class="button button-main" href="#/enqueue">
            Enqueue
          </a>
        )
      }
    >
      <Tabs
        label="Status"
        choices={[undefined, ...STATUSES]}
        chosen={status}
        onChoose={(each) => filter(withToken(text, "status", each ?? null))}
      />
      <FilterBar text={text} wrong={wrong} onChange={filter} />
      <SavedViews text={text} />
      <Loaded data={data}>
        {(page) => <Page key={key} page={page} query={query} text={text} onDone={data.again} />}
      </Loaded>
    </Screen>
  );
}

interface PageProps {
  page: Output<"listJobs">;
  query: Record<string, string | undefined>;
  text: string;
  onDone(): void;
}

function Page({ page: { jobs, next }, query, text, onDone }: PageProps) {
  const [selected, select] = useState<ReadonlySet<string>>(new Set());
  const [isAll, selectAll] = useState(false);
  const [verb, ask] = useState<Verb | null>(null);
  const anchor = useRef<number | null>(null);
  const box = useRef<HTMLInputElement>(null);
  const isOnPage = jobs.length > 0 && jobs.every(({ id }) => selected.has(id));
  useEffect(() => {
    if (box.current) box.current.indeterminate = selected.size > 0 && !isOnPage;
  });
  const toggle = (index: number, isRange: boolean) => {
    const id = jobs[index]!.id;
    const changed = new Set(selected);
    const isOn = !changed.has(id);
    const [from, to] =
      isRange && anchor.current !== null ? [anchor.current, index].toSorted((a, b) => a - b) : [index, index];
    for (const job of jobs.slice(from, to! + 1)) changed[isOn ? "add" : "delete"](job.id);
    anchor.current = index;
    selectAll(false);
    select(changed);
  };
  const canAct = may("operator");
  if (jobs.length === 0) {
    return (
      <Empty title={next === null ? "No job fits." : "None of the jobs looked at so far fits."}>
        {next === null ? (
          text === "" ? (
            <p>
              Enqueue the first one <a href="#/enqueue">here</a>, with <code>npx holdfast enqueue</code>, or from your
              program.
            </p>
          ) : (
            <button type="button" class="button" onClick={() => replaceQuery({ q: undefined, before: undefined })}>
              Show all jobs
            </button>
          )
        ) : (
          <Further next={next} />
        )}
      </Empty>
    );
  }
  return (
    <>
      {canAct && selected.size > 0 && (
        <Selection
          selected={selected.size}
          isAll={isAll}
          canAll={isOnPage && (next !== null || place.value.query.has("before"))}
          query={query}
          onAll={() => selectAll(true)}
          onVerb={ask}
          onNone={() => {
            select(new Set());
            selectAll(false);
          }}
        />
      )}
      <Table<Job>
        caption="Jobs, newest first"
        rows={jobs}
        keyOf={({ id }) => id}
        rowClass={({ id }) => (selected.has(id) ? "selected" : undefined)}
        columns={[
          canAct && {
            head: (
              <input
                ref={box}
                type="checkbox"
                aria-label="Select all on this page"
                checked={isOnPage}
                onChange={() => {
                  selectAll(false);
                  select(isOnPage ? new Set() : new Set(jobs.map(({ id }) => id)));
                }}
              />
            ),
            label: "Select",
            kind: "tight",
            cell: ({ id }, index) => (
              <input
                type="checkbox"
                aria-label={`Select job ${id}`}
                checked={selected.has(id)}
                onClick={(event) => {
                  event.preventDefault();
                  // After this event: a checkbox takes back what is set during its own.
                  const { shiftKey } = event;
                  setTimeout(() => toggle(index, shiftKey));
                }}
              />
            ),
          },
          plain(
            "Job",
            ({ id, kind, key }) => (
              <div class="job-name">
                <a href={href(["jobs", id])} data-row>
                  {kind}
                </a>
                <span class="quiet mono">{key ?? shortId(id)}</span>
              </div>
            ),
            "wide",
          ),
          plain("Status", (job) => <Badge job={job} />),
          plain("Attempts", ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}`, "figure"),
          plain("Queue", ({ queue }) => <a href={href(["queues", queue])}>{queue}</a>),
          plain(
            "Last error",
            ({ lastError, status }) =>
              lastError && status !== "done" ? (
                <span class="cut" title={lastError.message}>
                  {firstLine(lastError.message) || lastError.name}
                </span>
              ) : (
                <span class="quiet">–</span>
              ),
            "wide",
          ),
          plain("Last run took", (job) => <RunTook job={job} />, "figure"),
          plain("Enqueued", ({ createdAt }) => <Ago at={createdAt} />, "figure"),
        ]}
      />
      <div class="row row-between pad-top">
        <span class="quiet" role="status">
          {plural(jobs.length, "job")} on this page
        </span>
        <span class="row">
          {place.value.query.has("before") && (
            <button type="button" class="button" onClick={() => history.back()}>
              Back
            </button>
          )}
          {next !== null && <Further next={next} />}
        </span>
      </div>
      {verb && (
        <ActDialog
          verb={verb}
          filter={isAll ? toFilter(query) : { ids: [...selected] }}
          count={isAll ? undefined : selected.size}
          query={isAll ? query : undefined}
          what={
            isAll
              ? `all jobs that match ${text === "" ? "(no filter)" : `“${text}”`}`
              : plural(selected.size, "selected job")
          }
          onClose={() => ask(null)}
          onDone={() => {
            ask(null);
            select(new Set());
            selectAll(false);
            onDone();
          }}
        />
      )}
    </>
  );
}

/** While it runs the badge says for how long. */
function RunTook({ job: { startedAt, finishedAt } }: { job: Job }) {
  if (startedAt === null || finishedAt === null) return <span class="quiet">–</span>;
  return <>{took(Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt)))}</>;
}

function Further({ next }: { next: string }) {
  const q = place.value.query.get("q") ?? undefined;
  return (
    <a class="button" href={href(["jobs"], { q, before: next })}>
      Older
    </a>
  );
}

interface SelectionProps {
  selected: number;
  isAll: boolean;
  canAll: boolean;
  query: Record<string, string | undefined>;
  onAll(): void;
  onVerb(verb: Verb): void;
  onNone(): void;
}

function Selection({ selected, isAll, canAll, query, onAll, onVerb, onNone }: SelectionProps) {
  const matching = useData(`count ${JSON.stringify(query)}`, (signal) => call("countJobs", { signal, query })).value;
  const all = matching ? `${count(matching.count)}${matching.more ? "+" : ""}` : "…";
  return (
    <div class="selection" role="region" aria-label="Selected jobs">
      <span role="status">{isAll ? `All ${all} matching selected` : `${exact(selected)} selected`}</span>
      {canAll && !isAll && (
        <button type="button" class="button button-small" onClick={onAll}>
          Select all {all} matching
        </button>
      )}
      <span class="grow" />
      <button type="button" class="button button-small" onClick={() => onVerb("retry")}>
        Retry
      </button>
      <button type="button" class="button button-small" onClick={() => onVerb("cancel")}>
        Cancel
      </button>
      <button type="button" class="button button-small" onClick={() => onVerb("discard")}>
        Discard
      </button>
      <button type="button" class="button button-small" onClick={onNone}>
        Select none
      </button>
    </div>
  );
}
