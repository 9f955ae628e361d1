// What fails, by what the errors have in common: how often, since when, where; and all of one group again.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count } from "../format.ts";
import { may } from "../frame/me.ts";
import { href, place, replaceQuery } from "../router.ts";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { deadOf, GroupButton, GroupDialog, GroupName, keyOfGroup } from "./error-group.tsx";

type Group = Output<"listErrorGroups">["errors"][number];

const SPANS = ["1 h", "3 h", "24 h", "3 d", "7 d"];
const AGES = ["1h", "3h", "24h", "3d", "7d"];

export function ErrorsScreen() {
  const queue = place.value.query.get("queue") ?? undefined;
  const [chosen, choose] = useState<Group | null>(null);
  const data = useData(`errors ${queue ?? ""}`, (signal) =>
    call("listErrorGroups", { signal, query: { limit: 100, queue } }),
  );
  return (
    <Screen
      title="Errors"
      lead={
        <p class="quiet">
          Failed attempts by kind and by what their errors have in common. Figures are some seconds old.
        </p>
      }
    >
      {queue !== undefined && (
        <p>
          Queue {queue} only.{" "}
          <button type="button" class="button button-small" onClick={() => replaceQuery({ queue: undefined })}>
            All queues
          </button>
        </p>
      )}
      <Loaded data={data}>
        {({ errors }) => (
          <Table<Group>
            caption="Errors, the last one first"
            rows={errors}
            empty={<Empty title="Nothing failed in the last eight days." />}
            keyOf={keyOfGroup}
            columns={[
              plain(
                "Error",
                (group) => (
                  <GroupName group={group}>
                    first <Ago at={group.firstSeenAt} />
                  </GroupName>
                ),
                "wide",
              ),
              ...SPANS.map((name, n) =>
                plain<Group>(
                  name,
                  ({ seen, kind, fingerprint }) =>
                    seen[n] ? (
                      <a href={href(["jobs"], { q: `kind:${kind} fingerprint:${fingerprint} age:<${AGES[n]}` })}>
                        {count(seen[n])}
                      </a>
                    ) : (
                      <span class="quiet">0</span>
                    ),
                  "figure",
                ),
              ),
              plain(
                "Dead",
                (group) =>
                  group.deaths > 0 ? (
                    <a class="bad" href={deadOf(group)}>
                      {count(group.deaths)}
                    </a>
                  ) : (
                    "0"
                  ),
                "figure",
              ),
              plain("Last", ({ lastSeenAt }) => <Ago at={lastSeenAt} />, "figure"),
              may("operator") &&
                plain(
                  "Do",
                  (group) =>
                    group.deaths > 0 ? (
                      <GroupButton group={group} word="Redrive" onClick={() => choose(group)} />
                    ) : null,
                  "acts",
                ),
            ]}
          />
        )}
      </Loaded>
      {chosen && <GroupDialog group={chosen} verb="retry" onClose={() => choose(null)} onDone={() => choose(null)} />}
    </Screen>
  );
}
