// What is cleaned up and recovered: each chore, what it did, what it would do, and doing it now.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { exact, now, plural, span, took } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { place, replaceQuery } from "../router.ts";
import { Confirm } from "../ui/dialog.tsx";
import { Ago, Empty, Loaded, Panel, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";

type Chore = Output<"listChores">["chores"][number];
type Run = Output<"choreHistory">["runs"][number];

const rowsInWords = (rows: Record<string, number>): string =>
  Object.entries(rows)
    .map(([outcome, many]) => `${exact(many)} ${outcome}`)
    .join(", ") || "nothing";

export function JanitorScreen() {
  const [preview, show] = useState<{ chore: string; words: string } | null>(null);
  const [asked, ask] = useState<string | null>(null);
  const chores = useData("chores", (signal) => call("listChores", { signal }));
  const only = place.value.query.get("chore") ?? undefined;
  const cursor = place.value.query.get("before") ?? undefined;
  const history = useData(`chore runs ${only ?? ""} ${cursor ?? ""}`, (signal) =>
    call("choreHistory", { signal, query: { chore: only, cursor, limit: 50 } }),
  );
  const look = (chore: string) =>
    attempt(async () => {
      const { previews } = await call("previewChores", { query: { chore } });
      const found = previews[0];
      show({ chore, words: found ? `${rowsInWords(found.rows)}${found.more ? ", and more" : ""}` : "It cannot say." });
      return `Looked at what ${chore} would do`;
    });
  const run = (chore: string) => {
    ask(null);
    void attempt(async () => {
      const { results } = await call("runChores", { query: { chore } });
      const result = results[0];
      if (!result?.ran) return `${chore} is being run by ${result?.by ?? "another process"}`;
      return result.error ?? `${chore}: ${rowsInWords(result.rows)} in ${took(result.tookMs)}`;
    }).then(() => {
      chores.again();
      history.again();
    });
  };
  return (
    <Screen
      title="Janitor"
      lead={<p class="quiet">Recovers what died and removes what is over, in small steps, in one process at a time.</p>}
    >
      <Panel title="Chores">
        <Loaded data={chores}>
          {({ chores: all }) => (
            <Table<Chore>
              caption="Chores"
              rows={all}
              keyOf={({ name }) => name}
              columns={[
                plain(
                  "Chore",
                  ({ name, failures, error }) => (
                    <div class="job-name">
                      <button
                        type="button"
                        class="link"
                        onClick={() => replaceQuery({ chore: name, before: undefined })}
                      >
                        {name}
                      </button>
                      {failures > 0 && (
                        <span class="bad">
                          failed {plural(failures, "time")} in a row: {error}
                        </span>
                      )}
                    </div>
                  ),
                  "wide",
                ),
                plain("Every", ({ everyMs }) => span(everyMs), "figure"),
                plain(
                  "Last success",
                  ({ succeededAt, everywhere }) =>
                    everywhere ? <span class="quiet">in every process</span> : <Ago at={succeededAt} />,
                  "figure",
                ),
                plain("Next", ({ nextAt }) => <Next at={nextAt} />, "figure"),
                plain(
                  "Do",
                  ({ name, canPreview }) => (
                    <span class="row row-tight">
                      {canPreview && (
                        <button type="button" class="button button-small" onClick={() => void look(name)}>
                          Preview<span class="sr-only"> {name}</span>
                        </button>
                      )}
                      {may("admin") && (
                        <button type="button" class="button button-small" onClick={() => ask(name)}>
                          Run<span class="sr-only"> {name}</span>
                        </button>
                      )}
                    </span>
                  ),
                  "acts",
                ),
              ]}
            />
          )}
        </Loaded>
      </Panel>
      {preview && (
        <div class="notice" role="status">
          <strong>{preview.chore}</strong> would take: {preview.words}.
        </div>
      )}
      <Panel
        title="What it did"
        aside={
          only === undefined ? undefined : (
            <button
              type="button"
              class="button button-small"
              onClick={() => replaceQuery({ chore: undefined, before: undefined })}
            >
              {only} only: show all
            </button>
          )
        }
      >
        <Loaded data={history}>
          {({ runs, next }) => (
            <Table<Run>
              caption="Runs that did something or failed, newest first"
              rows={runs}
              next={next}
              empty={
                <Empty title="Nothing had to be done yet.">
                  <p>Runs that did something or failed are listed here.</p>
                </Empty>
              }
              keyOf={({ id }) => id}
              columns={[
                plain("When", ({ startedAt }) => <Ago at={startedAt} />, "figure"),
                plain("Chore", ({ chore }) => chore),
                plain(
                  "What",
                  ({ rows, error }) => (error === null ? rowsInWords(rows) : <span class="bad wrap">{error}</span>),
                  "wide",
                ),
                plain("Took", ({ tookMs }) => took(tookMs), "figure"),
                plain("By", ({ by }) => <span class="mono">{by}</span>),
              ]}
            />
          )}
        </Loaded>
      </Panel>
      {asked !== null && (
        <Confirm
          question={{
            title: `Run ${asked} now?`,
            text: "It does what it would do at its next turn: what is over is removed for good.",
            yes: "Run",
            isDangerous: true,
          }}
          onClose={() => ask(null)}
          onYes={() => run(asked)}
        />
      )}
    </Screen>
  );
}

/** One whose turn has come waits for the process that takes it. */
function Next({ at }: { at: string | null }) {
  const isDue = at !== null && Date.parse(at) < now.value - 5_000;
  return (
    <>
      {isDue && "due "}
      <Ago at={at} ahead />
    </>
  );
}
