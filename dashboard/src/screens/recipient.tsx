// One recipient's parcels: what waits, what was fetched, what is gone and why.
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { bytes, count, now, plural, span } from "../format.ts";
import { place, replaceQuery } from "../router.ts";
import { Ago, Card, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { Tabs } from "../ui/tabs.tsx";

type Parcel = Output<"listParcels">["parcels"][number];

const STATES = ["waiting", "fetched", "acked", "expired"] as const;

const HINTS = {
  "not polling": "Nobody asks for its parcels: is the recipient running, and is its address right?",
  "not fetching": "It asks for the list and does not download: look at its errors, its disk and its network.",
  "not acking": "It downloads and never says that it has them: look at what it does after the download.",
} as const;

export function RecipientScreen({ recipient }: { recipient: string }) {
  const state = place.value.query.get("state") ?? undefined;
  const cursor = place.value.query.get("after") ?? undefined;
  const data = useData(`inbox ${recipient} ${state ?? ""} ${cursor ?? ""}`, async (signal) => {
    const [{ inboxes }, page] = await Promise.all([
      call("listInboxes", { signal, query: { recipient } }),
      call("listParcels", { signal, params: { recipient }, query: { state, cursor, limit: 50 } }),
    ]);
    return { inbox: inboxes[0], page };
  });
  return (
    <Screen title={`Inbox of ${recipient}`}>
      <Loaded data={data}>
        {({ inbox, page: { parcels, next } }) => (
          <>
            {inbox?.stuck && (
              <div class="notice notice-bad" role="alert">
                <strong>
                  {recipient} {inbox.stuck.message}.
                </strong>{" "}
                The oldest waits for {span(inbox.stuck.forMs)}. {HINTS[inbox.stuck.code]}
              </div>
            )}
            {inbox && (
              <div class="cards">
                <Card label="Waiting" value={count(inbox.waiting)} note={bytes(inbox.bytes)} />
                <Card label="Fetched, not acked" value={count(inbox.fetched)} />
                <Card label="Acked" value={count(inbox.acked)} note={bytes(inbox.ackedBytes)} />
                <Card
                  label="Expired"
                  value={count(inbox.expired)}
                  note={`${count(inbox.neverFetched)} never fetched`}
                  tone={inbox.expired > 0 ? "warn" : undefined}
                />
              </div>
            )}
            <Tabs
              label="State"
              choices={[undefined, ...STATES]}
              chosen={state}
              onChoose={(each) => replaceQuery({ state: each, after: undefined })}
            />
            <Table<Parcel>
              caption="Parcels, oldest first"
              rows={parcels}
              next={next}
              pageBy="after"
              empty={<Empty title="No parcel here." />}
              keyOf={({ id }) => id}
              columns={[
                plain(
                  "Parcel",
                  ({ name, type, sha256 }) => (
                    <div class="job-name">
                      <span class="wrap">{name}</span>
                      <span class="quiet mono" title={sha256}>
                        {type || "no type"} · {sha256.slice(0, 12)}
                      </span>
                    </div>
                  ),
                  "wide",
                ),
                plain("State", ({ state: now_, reason }) => (
                  <span class={`chip${now_ === "expired" ? " chip-bad" : ""}`}>
                    {now_}
                    {reason ? `: ${reason}` : ""}
                  </span>
                )),
                plain("Size", ({ size }) => bytes(size), "figure"),
                plain("Put", ({ createdAt }) => <Ago at={createdAt} />, "figure"),
                plain("Fetched", ({ fetchCount }) => plural(fetchCount, "time"), "figure"),
                plain("Expires", (parcel) => <Expiry parcel={parcel} />, "figure"),
              ]}
            />
          </>
        )}
      </Loaded>
    </Screen>
  );
}

function Expiry({ parcel: { createdAt, expiresAt, state } }: { parcel: Parcel }) {
  if (state === "acked" || state === "expired") return <span class="quiet">–</span>;
  const whole = Date.parse(expiresAt) - Date.parse(createdAt);
  const left = Date.parse(expiresAt) - now.value;
  return (
    <span class="countdown">
      <span class="countdown-track" aria-hidden="true">
        <span class="countdown-left" style={{ width: `${Math.max(0, Math.min(100, (100 * left) / whole))}%` }} />
      </span>
      <span>{left > 0 ? `in ${span(left)}` : "over"}</span>
    </span>
  );
}
