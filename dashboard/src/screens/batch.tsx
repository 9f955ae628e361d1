// One batch: how far, how fast, what failed and why; pause, resume, cancel, retry what failed.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { download } from "../api/download.ts";
import { useData } from "../api/use-data.ts";
import { exact, firstLine, plural, shortId } from "../format.ts";
import { may } from "../frame/me.ts";
import { attempt } from "../frame/toasts.tsx";
import { href, place, replaceQuery } from "../router.ts";
import { Confirm } from "../ui/dialog.tsx";
import { Ago, Card, Empty, Loaded, Panel, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { type Batch, BatchBar, BatchState, etaOf, Legend, rateOf } from "./batch-parts.tsx";

type Item = Output<"listItems">["items"][number];

export function BatchScreen({ id }: { id: string }) {
  const params = { id };
  const data = useData(`batch ${id}`, async (signal) => {
    const [batch, { errors }] = await Promise.all([
      call("readBatch", { signal, params }),
      call("listErrors", { signal, params }),
    ]);
    return { batch, errors };
  });
  const batch = data.value?.batch;
  return (
    <Screen
      title={batch?.kind ?? "Batch"}
      lead={
        batch && (
          <div class="row">
            <BatchState batch={batch} />
            <span class="quiet mono wrap">{batch.key ?? batch.id}</span>
            {batch.owner !== null && <span class="quiet">of {batch.owner}</span>}
          </div>
        )
      }
      actions={batch && may("operator") && <Actions batch={batch} onDone={data.again} />}
    >
      <Loaded data={data}>
        {({ batch: found, errors }) => (
          <>
            <Panel title="Progress">
              <div class="pad-sides">
                <BatchBar batch={found} />
                <Legend batch={found} />
              </div>
            </Panel>
            <div class="cards">
              <Card
                label="Ended"
                value={exact(found.ended)}
                note={`of ${exact(found.total)}${found.closed ? "" : ", and more may come"}`}
              />
              <Card
                label="Errors"
                value={exact(found.counts["error"] ?? 0)}
                tone={found.counts["error"] ? "bad" : undefined}
              />
              <Card label="Warnings" value={exact(found.warnings)} tone={found.warnings > 0 ? "warn" : undefined} />
              <Card label="Rate" value={rateOf(found)} note={`${plural(found.concurrency, "item")} at once`} />
              <Card
                label="Left"
                value={etaOf(found)}
                note={
                  <>
                    made <Ago at={found.createdAt} />
                  </>
                }
              />
            </div>
            {errors.length > 0 && (
              <Panel title="Errors that look alike">
                <ul class="list">
                  {errors.map(({ fingerprint, count, sample, lastAt, lastSeq }) => (
                    <li key={fingerprint}>
                      <span class="wrap">
                        <strong>{exact(count)} ×</strong> {sample.name}: {firstLine(sample.message)}
                      </span>
                      <span class="quiet">
                        last with item {lastSeq}, <Ago at={lastAt} />
                      </span>
                    </li>
                  ))}
                </ul>
              </Panel>
            )}
          </>
        )}
      </Loaded>
      {batch && <Items batch={batch} onChange={data.again} />}
    </Screen>
  );
}

function Items({ batch, onChange }: { batch: Batch; onChange(): void }) {
  const state = place.value.query.get("state") ?? undefined;
  const cursor = place.value.query.get("after") ?? undefined;
  const data = useData(`items ${batch.id} ${state ?? ""} ${cursor ?? ""}`, (signal) =>
    call("listItems", { signal, params: { id: batch.id }, query: { state, cursor, limit: 50 } }),
  );
  const again = () => {
    data.again();
    onChange();
  };
  const states = Object.keys(batch.counts).filter((name) => batch.counts[name] !== 0 || name === state);
  return (
    <Panel
      title="Items"
      aside={
        <span class="row row-tight">
          {(["exportCsv", "exportLines"] as const).map((name) => (
            <button
              key={name}
              type="button"
              class="button button-small"
              onClick={() => void attempt(async () => `Saved: ${(await download(name, batch.id, { state })).file}`)}
            >
              {name === "exportCsv" ? "CSV" : "JSON"}
              <span class="sr-only"> of {state === undefined ? "all items" : `items that are ${state}`}</span>
            </button>
          ))}
        </span>
      }
    >
      <div class="pad-sides">
        <Tabs
          label="Items by state"
          choices={[undefined, ...states]}
          chosen={state}
          onChoose={(each) => replaceQuery({ state: each, after: undefined })}
          wordsOf={(name) => `${name} ${exact(batch.counts[name] ?? 0)}`}
        />
      </div>
      <Loaded data={data}>
        {({ items, next }) => (
          <Table<Item>
            caption="Items, in their order"
            rows={items}
            next={next}
            pageBy="after"
            empty={<Empty title="No item here." />}
            keyOf={({ seq }) => String(seq)}
            columns={[
              plain("Item", ({ seq }) => exact(seq), "figure"),
              plain("State", ({ state: now_, jobId, endedAt }) => (
                <span class="row row-tight">
                  <ItemState state={now_} batch={batch} />
                  {jobId !== null && endedAt === null && (
                    <a href={href(["jobs", jobId])}>
                      its job<span class="sr-only"> {shortId(jobId)}</span>
                    </a>
                  )}
                </span>
              )),
              plain("What", ({ payload }) => <span class="mono cut">{JSON.stringify(payload)}</span>, "wide"),
              plain(
                "Came to",
                ({ error, result }) =>
                  error ? (
                    <span class="bad wrap">
                      {error.name}: {firstLine(error.message)}
                    </span>
                  ) : result === null || result === undefined ? (
                    <span class="quiet">–</span>
                  ) : (
                    <span class="mono cut">{JSON.stringify(result)}</span>
                  ),
                "wide",
              ),
              plain("Attempts", ({ attempt: used }) => String(used), "figure"),
              plain("Ended", ({ endedAt }) => <Ago at={endedAt} />, "figure"),
              ...(may("operator") && batch.state !== "cancelled" && items.some(isError)
                ? [
                    plain<Item>(
                      "Try again",
                      (item) => isError(item) && <RetryItem batch={batch} item={item} onDone={again} />,
                      "acts",
                    ),
                  ]
                : []),
            ]}
          />
        )}
      </Loaded>
    </Panel>
  );
}

const isError = ({ state }: Item): boolean => state === "error";

function RetryItem({ batch, item, onDone }: { batch: Batch; item: Item; onDone(): void }) {
  const { seq } = item;
  return (
    <button
      type="button"
      class="button button-small"
      onClick={() =>
        void attempt(async () => {
          const { retried } = await call("retryFailed", { params: { id: batch.id }, query: { seqs: seq } });
          return retried === 0 ? `Item ${seq} is no error any more` : `Item ${seq} will be tried again`;
        }).then(onDone)
      }
    >
      Retry<span class="sr-only"> item {seq}</span>
    </button>
  );
}

function ItemState({ state, batch }: { state: string; batch: Batch }) {
  const look =
    state === "error"
      ? " chip-bad"
      : batch.outcomes[state]?.warning
        ? " chip-warn"
        : state in batch.outcomes
          ? " chip-good"
          : "";
  return <span class={`chip${look}`}>{state}</span>;
}

function Actions({ batch, onDone }: { batch: Batch; onDone(): void }) {
  const [isAsking, ask] = useState(false);
  const params = { id: batch.id };
  const run = (work: () => Promise<string>) => {
    ask(false);
    void attempt(work).then(onDone);
  };
  const isOpen = batch.state === "queued" || batch.state === "running" || batch.state === "paused";
  return (
    <>
      {(batch.counts["error"] ?? 0) > 0 && batch.state !== "cancelled" && (
        <button
          type="button"
          class="button button-main"
          onClick={() =>
            run(async () => `${plural((await call("retryFailed", { params })).retried, "item")} will be tried again`)
          }
        >
          Retry failed
        </button>
      )}
      {batch.state === "paused" && (
        <button
          type="button"
          class="button button-main"
          onClick={() => run(async () => (await call("resumeBatch", { params }), "It goes on"))}
        >
          Resume
        </button>
      )}
      {(batch.state === "queued" || batch.state === "running") && (
        <button
          type="button"
          class="button"
          onClick={() => run(async () => (await call("pauseBatch", { params }), "It is paused"))}
        >
          Pause
        </button>
      )}
      {isOpen && (
        <button type="button" class="button button-bad" onClick={() => ask(true)}>
          Cancel
        </button>
      )}
      {isAsking && (
        <Confirm
          question={{
            title: "Cancel this batch?",
            text: "Items that wait are not run; those that run are asked to end. What has ended stays as it is.",
            yes: "Cancel the batch",
            isDangerous: true,
          }}
          onClose={() => ask(false)}
          onYes={() => run(async () => (await call("cancelBatch", { params }), "The batch is cancelled"))}
        />
      )}
    </>
  );
}
