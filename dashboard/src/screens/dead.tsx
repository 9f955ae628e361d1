// What needs a person: dead jobs by what killed them, to redrive at a rate, or to put away.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count } from "../format.ts";
import { may } from "../frame/me.ts";
import { href } from "../router.ts";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { deadOf, GroupButton, GroupDialog, GroupName, keyOfGroup } from "./error-group.tsx";

type Group = Output<"listDead">["groups"][number];

const WHY: Record<string, string> = {
  crashed: "killed its process",
  timeout: "timed out",
  "invalid-payload": "payload does not fit",
  fatal: "given up by its handler",
  exhausted: "attempts used up",
};

export function DeadScreen() {
  const [chosen, choose] = useState<{ group: Group; verb: "retry" | "discard" } | null>(null);
  const data = useData("dead", (signal) => call("listDead", { signal, query: { limit: 100 } }));
  return (
    <Screen
      title="Dead"
      lead={
        <p class="quiet">
          Jobs that ran out of attempts, or cannot succeed. They stay until somebody retries or discards them.
        </p>
      }
      actions={<a href={href(["jobs"], { q: "status:dead" })}>One by one</a>}
    >
      <Loaded data={data}>
        {({ groups }) => (
          <Table<Group>
            caption="Dead jobs by kind and error, the largest group first"
            rows={groups}
            empty={<Empty title="No job is dead." />}
            keyOf={keyOfGroup}
            columns={[
              plain(
                "Why",
                (group) => <GroupName group={group}>{WHY[group.reason ?? ""] ?? WHY["exhausted"]}</GroupName>,
                "wide",
              ),
              plain(
                "Jobs",
                (group) => (
                  <a href={deadOf(group)}>
                    {count(group.count)}
                    {group.more && "+"}
                  </a>
                ),
                "figure",
              ),
              plain("Newest", ({ lastAt }) => <Ago at={lastAt} />, "figure"),
              may("operator") &&
                plain(
                  "Do",
                  (group) => (
                    <span class="row row-tight">
                      <GroupButton
                        group={group}
                        word="Redrive"
                        isMain
                        onClick={() => choose({ group, verb: "retry" })}
                      />
                      <GroupButton group={group} word="Discard" onClick={() => choose({ group, verb: "discard" })} />
                    </span>
                  ),
                  "acts",
                ),
            ]}
          />
        )}
      </Loaded>
      {chosen && (
        <GroupDialog
          {...chosen}
          onClose={() => choose(null)}
          onDone={() => {
            choose(null);
            data.again();
          }}
        />
      )}
    </Screen>
  );
}
