// What was asked for on many jobs at once, and how far it is.
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { exact, now, span } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";

type Action = Output<"listActions">["actions"][number];

export function ActionsScreen() {
  const data = useData("actions", (signal) => call("listActions", { signal, query: { limit: 50 } }));
  return (
    <Screen
      title="Actions"
      lead={
        <p class="quiet">Retry, discard and cancel on many jobs, carried out in the background. Kept for 90 days.</p>
      }
    >
      <Loaded data={data}>
        {({ actions }) =>
          actions.length === 0 ? (
            <Empty title="Nothing was asked for yet.">
              <p>
                Select jobs in <a href="#/jobs">the list</a>, or redrive a group of <a href="#/dead">dead ones</a>.
              </p>
            </Empty>
          ) : (
            <Table<Action>
              caption="Actions, newest first"
              rows={actions}
              keyOf={({ id }) => id}
              columns={[
                plain(
                  "Action",
                  ({ title, error }) => (
                    <div class="job-name">
                      <span class="wrap">{title}</span>
                      {error && <span class="bad wrap">{error}</span>}
                    </div>
                  ),
                  "wide",
                ),
                plain("State", ({ state }) => (
                  <span class={`chip${state === "failed" ? " chip-bad" : state === "running" ? " chip-main" : ""}`}>
                    {state}
                  </span>
                )),
                plain("Done", (action) => <Done action={action} />, "wide"),
                plain("By", ({ askedBy }) => askedBy),
                plain("Asked for", ({ createdAt }) => <Ago at={createdAt} />, "figure"),
                may("operator") &&
                  plain(
                    "Do",
                    ({ id, state }) =>
                      state === "running" ? (
                        <button
                          type="button"
                          class="button button-small"
                          onClick={() =>
                            void attempt(
                              async () => (await call("cancelAction", { params: { id } }), "It does nothing more"),
                            ).then(data.again)
                          }
                        >
                          Stop
                        </button>
                      ) : null,
                    "acts",
                  ),
              ]}
            />
          )
        }
      </Loaded>
    </Screen>
  );
}

function Done({ action: { done, skipped, expected, perMinute, state, createdAt, finishedAt } }: { action: Action }) {
  const taken = done + skipped;
  const whole = Math.max(expected ?? 0, taken);
  const words = `${exact(done)}${expected === null ? "" : ` of ${exact(whole)}`}${skipped > 0 ? `, ${exact(skipped)} had moved on` : ""}`;
  const ageMs = (finishedAt ? Date.parse(finishedAt) : now.value) - Date.parse(createdAt);
  const left = taken > 0 && expected !== null ? ((whole - taken) * ageMs) / taken : null;
  return (
    <div class="job-name">
      {expected !== null && state === "running" && (
        <progress class="progress" max={Math.max(1, whole)} value={taken} aria-label={words}>
          {words}
        </progress>
      )}
      <span>{words}</span>
      <span class="quiet">
        {perMinute !== null && `at most ${exact(perMinute)} a minute`}
        {state === "running" &&
          left !== null &&
          left > 0 &&
          `${perMinute === null ? "" : " · "}about ${span(left)} left`}
      </span>
    </div>
  );
}
