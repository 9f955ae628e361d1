// Bytes handed over: how each recipient's inbox stands, and which does not move.
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { bytes, count } from "../format.ts";
import { href, place } from "../router.ts";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";

type Inbox = Output<"listInboxes">["inboxes"][number];

export function InboxScreen() {
  const cursor = place.value.query.get("after") ?? undefined;
  const data = useData(`inboxes ${cursor ?? ""}`, (signal) =>
    call("listInboxes", { signal, query: { cursor, limit: 50 } }),
  );
  return (
    <Screen title="Inbox" lead={<p class="quiet">Files that wait for a recipient who polls, fetches and acks.</p>}>
      <Loaded data={data}>
        {({ inboxes, next }) => (
          <Table<Inbox>
            caption="Inboxes by recipient"
            rows={inboxes}
            next={next}
            pageBy="after"
            empty={
              <Empty title="No recipient has an inbox yet.">
                <p>
                  Put a file: <code>npx holdfast inbox put ws-17 photo.jpg</code>
                </p>
              </Empty>
            }
            keyOf={({ recipient }) => recipient}
            columns={[
              plain(
                "Recipient",
                ({ recipient, stuck }) => (
                  <div class="job-name">
                    <a href={href(["inbox", recipient])} data-row>
                      {recipient}
                    </a>
                    {stuck && <span class="bad">Stuck: {stuck.message}</span>}
                  </div>
                ),
                "wide",
              ),
              plain("Waiting", ({ waiting }) => count(waiting), "figure"),
              plain("Not acked", ({ fetched }) => count(fetched), "figure"),
              plain("Bytes", (inbox) => bytes(inbox.bytes), "figure"),
              plain("Oldest", ({ oldestAt }) => <Ago at={oldestAt} />, "figure"),
              plain("Acked", ({ acked }) => count(acked), "figure"),
              plain(
                "Expired",
                ({ expired }) => (expired > 0 ? <span class="warn">{count(expired)}</span> : "0"),
                "figure",
              ),
              plain("Polled", ({ polledAt }) => <Ago at={polledAt} />, "figure"),
              plain("Last ack", ({ ackedAt }) => <Ago at={ackedAt} />, "figure"),
            ]}
          />
        )}
      </Loaded>
    </Screen>
  );
}
