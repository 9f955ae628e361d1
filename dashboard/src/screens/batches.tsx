// Bulk work: how far each batch is, how fast it goes, until when.
import { call } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { exact, shortId } from "../format.ts";
import { href, place, replaceQuery } from "../router.ts";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { type Batch, BatchBar, BatchState, etaOf, rateOf } from "./batch-parts.tsx";

const STATES = [undefined, "queued", "running", "paused", "done", "cancelled"] as const;

export function BatchesScreen() {
  const { query } = place.value;
  const state = query.get("state") ?? undefined;
  const withErrors = query.get("errors") === "1" ? "true" : undefined;
  const cursor = query.get("before") ?? undefined;
  const data = useData(`batches ${state ?? ""} ${withErrors ?? ""} ${cursor ?? ""}`, (signal) =>
    call("listBatches", { signal, query: { state, withErrors, cursor, limit: 25 } }),
  );
  return (
    <Screen title="Batches">
      <div class="row pad-bottom">
        <Tabs
          label="State"
          choices={STATES}
          chosen={state}
          onChoose={(each) => replaceQuery({ state: each, before: undefined })}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={withErrors !== undefined}
            onChange={(event) =>
              replaceQuery({ errors: event.currentTarget.checked ? "1" : undefined, before: undefined })
            }
          />
          Only with errors
        </label>
      </div>
      <Loaded data={data}>
        {({ batches, next }) => (
          <Table<Batch>
            caption="Batches, newest first"
            rows={batches}
            next={next}
            empty={
              <Empty title="No batch fits.">
                <p>
                  A batch is made with <code>hf.batches.create()</code>, <code>POST /api/v1/batches</code> or{" "}
                  <code>npx holdfast batches create</code>.
                </p>
              </Empty>
            }
            keyOf={({ id }) => id}
            columns={[
              plain(
                "Batch",
                ({ id, kind, key, owner }) => (
                  <div class="job-name">
                    <a href={href(["batches", id])} data-row>
                      {kind}
                    </a>
                    <span class="quiet">
                      <span class="mono">{key ?? shortId(id)}</span>
                      {owner !== null && ` · ${owner}`}
                    </span>
                  </div>
                ),
                "wide",
              ),
              plain("State", (batch) => <BatchState batch={batch} />),
              plain("Progress", (batch) => <BatchBar batch={batch} />, "wide"),
              plain("Ended", ({ ended, total }) => `${exact(ended)} of ${exact(total)}`, "figure"),
              plain(
                "Errors",
                ({ counts }) => (counts["error"] ? <span class="bad">{exact(counts["error"])}</span> : "0"),
                "figure",
              ),
              plain("Rate", rateOf, "figure"),
              plain("Left", etaOf, "figure"),
              plain("Made", ({ createdAt }) => <Ago at={createdAt} />, "figure"),
            ]}
          />
        )}
      </Loaded>
    </Screen>
  );
}
