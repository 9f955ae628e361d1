// What needs a person: dead jobs by what killed them, to redrive at a rate, or to put away.
import { useState } from "preact/hooks";
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { count, firstLine } from "../format.ts";
import { may } from "../frame/me.ts";
import { href } from "../router.ts";
import { Ago, Empty, Loaded, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";
import { ActDialog, type Verb } from "./act.tsx";

type Group = Output<"listDead">["groups"][number];

const WHY: Record<string, string> = {
  crashed: "killed its process",
  timeout: "timed out",
  "invalid-payload": "payload does not fit",
  fatal: "given up by its handler",
  exhausted: "attempts used up",
};

export function DeadScreen() {
  const [chosen, choose] = useState<{ group: Group; verb: Verb } | null>(null);
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
        {({ groups }) =>
          groups.length === 0 ? (
            <Empty title="No job is dead." />
          ) : (
            <Table<Group>
              caption="Dead jobs by kind and error, the largest group first"
              rows={groups}
              keyOf={({ kind, fingerprint }) => `${kind} ${fingerprint}`}
              columns={[
                plain(
                  "Why",
                  (group) => (
                    <div class="job-name">
                      <a href={href(["jobs", group.lastJobId])} data-row>
                        <strong>{group.name ?? "Unknown"}</strong> {firstLine(group.message ?? "").slice(0, 200)}
                      </a>
                      <span class="quiet">
                        {group.kind} · <a href={href(["queues", group.queue])}>{group.queue}</a> ·{" "}
                        {WHY[group.reason ?? ""] ?? "attempts used up"}
                      </span>
                    </div>
                  ),
                  "wide",
                ),
                plain(
                  "Jobs",
                  ({ count: many, more, kind, fingerprint }) => (
                    <a href={href(["jobs"], { q: `status:dead kind:${kind} fingerprint:${fingerprint}` })}>
                      {count(many)}
                      {more && "+"}
                    </a>
                  ),
                  "figure",
                ),
                plain("Newest", ({ lastAt }) => <Ago at={lastAt} />, "figure"),
                may("operator") &&
                  plain("Do", (group) => (
                    <span class="row row-tight">
                      <button
                        type="button"
                        class="button button-small button-main"
                        onClick={() => choose({ group, verb: "retry" })}
                      >
                        Redrive
                        <span class="sr-only">
                          {" "}
                          {group.kind}: {group.name}
                        </span>
                      </button>
                      <button
                        type="button"
                        class="button button-small"
                        onClick={() => choose({ group, verb: "discard" })}
                      >
                        Discard
                        <span class="sr-only">
                          {" "}
                          {group.kind}: {group.name}
                        </span>
                      </button>
                    </span>
                  )),
              ]}
            />
          )
        }
      </Loaded>
      {chosen && (
        <ActDialog
          verb={chosen.verb}
          word={chosen.verb === "retry" ? "Redrive" : "Discard"}
          filter={{ status: ["dead"], kind: chosen.group.kind, fingerprint: chosen.group.fingerprint }}
          query={{ status: "dead", kind: chosen.group.kind, fingerprint: chosen.group.fingerprint }}
          what={`dead ${chosen.group.kind} with ${chosen.group.name ?? "this error"}`}
          {...(chosen.verb === "retry" ? { perMinute: 600 } : {})}
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
