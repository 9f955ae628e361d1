// What this is, what it runs with and where each value comes from, what is worth a warning, who did what.
import { call, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { bytes, count, took } from "../format.ts";
import { may } from "../frame/me.ts";
import { href, place } from "../router.ts";
import { Ago, At, Empty, Loaded, Panel, Screen } from "../ui/parts.tsx";
import { plain, Table } from "../ui/table.tsx";

type System = Output<"readSystem">;

export function SystemScreen() {
  const data = useData("system", (signal) => call("readSystem", { signal }));
  const apps = useData("apps", (signal) => call("listApps", { signal })).value?.apps ?? [];
  return (
    <Screen title="System">
      <Loaded data={data}>
        {(system) => (
          <>
            <Facts system={system} />
            <Panel title="Warnings">
              {system.warnings.length === 0 ? (
                <Empty title="No setting looks like a mistake." />
              ) : (
                <ul class="list">
                  {system.warnings.map(({ code, message }) => (
                    <li key={code + message}>
                      <span class="chip chip-warn">{code}</span> {message}
                    </li>
                  ))}
                </ul>
              )}
            </Panel>
            {apps.length > 0 && (
              <Panel title="Apps">
                <ul class="list">
                  {apps.map(({ name, title, page }) => (
                    <li key={name}>{page === null ? title : <a href={`.${page}`}>{title}</a>}</li>
                  ))}
                </ul>
              </Panel>
            )}
            <Panel title="Settings">
              {system.settings === null ? (
                <Empty title="This server was started by a program, not by the command line: its settings are in the program." />
              ) : (
                <Table<NonNullable<System["settings"]>[number]>
                  caption="Settings and where each comes from"
                  rows={system.settings}
                  keyOf={({ name }) => name}
                  columns={[
                    plain("Setting", ({ name }) => name),
                    plain("Value", ({ value }) => <span class="mono wrap">{value}</span>, "wide"),
                    plain("Source", ({ source }) => <span class="wrap">{source}</span>, "wide"),
                  ]}
                />
              )}
            </Panel>
            <Panel title="Tables">
              <Table<System["tables"][number]>
                caption="Tables, the largest first"
                rows={system.tables}
                keyOf={({ name }) => name}
                columns={[
                  plain("Table", ({ name, parts }) => `${name}${parts > 1 ? ` (${parts} days)` : ""}`, "wide"),
                  plain("Size", (table) => bytes(table.bytes), "figure"),
                  plain("Rows, about", ({ rows }) => count(rows), "figure"),
                  plain("Dead rows", ({ deadRows }) => count(deadRows), "figure"),
                  plain("Vacuumed", ({ vacuumedAt }) => <Ago at={vacuumedAt} />, "figure"),
                ]}
              />
            </Panel>
            <Panel title="Schema">
              <Table<System["migrations"][number]>
                caption="Migrations"
                rows={system.migrations.toReversed()}
                keyOf={({ version }) => String(version)}
                columns={[
                  plain("Migration", ({ name }) => name, "wide"),
                  plain("Applied", ({ appliedAt }) => <At at={appliedAt} />, "figure"),
                ]}
              />
            </Panel>
          </>
        )}
      </Loaded>
      <Panel title="Audit log">{may("admin") ? <Audit /> : <Empty title="Only an admin sees who did what." />}</Panel>
    </Screen>
  );
}

function Facts({ system: { version, node, tier, schema, caller, database, environment } }: { system: System }) {
  const facts: [string, string][] = [
    ["Holdfast", version],
    ["Environment", environment ?? "not named"],
    ["Tier", tier],
    ["PostgreSQL", database.version],
    ["Database", `${database.name}, schema ${schema}`],
    ["Answers in", took(database.answeredInMs)],
    ["Clocks differ by", took(Math.abs(database.skewMs))],
    ["Connections", tier === "embedded" ? "its own" : `${database.connections} of ${database.maxConnections}`],
    ["Node", node],
    ["You", `${caller.name}, ${caller.role}`],
  ];
  return (
    <dl class="facts panel">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="wrap">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Audit() {
  const cursor = place.value.query.get("before") ?? undefined;
  const data = useData(`audit ${cursor ?? ""}`, (signal) =>
    call("listAudit", { signal, query: { cursor, limit: 25 } }),
  );
  return (
    <Loaded data={data}>
      {({ entries, next }) => (
        <Table<Output<"listAudit">["entries"][number]>
          caption="What people did, newest first"
          rows={entries}
          next={next}
          empty={<Empty title="Nobody has done anything yet." />}
          keyOf={({ id }) => id}
          columns={[
            plain("When", ({ at }) => <At at={at} />),
            plain("Who", ({ caller }) => caller),
            plain("What", ({ action }) => action),
            plain("To what", (entry) => <Target {...entry} />, "wide"),
            plain("Answer", ({ status }) => <span class={status >= 400 ? "bad" : ""}>{status}</span>, "figure"),
          ]}
        />
      )}
    </Loaded>
  );
}

const PAGES = [
  ["Action", "actions"],
  ["Job", "jobs"],
  ["Batch", "batches"],
] as const;

/** What was asked for on many jobs says there which, and what came of it. */
function Target({ action, target }: { action: string; target: string }) {
  const path = PAGES.find(([end]) => action.endsWith(end))?.[1];
  const words = <span class="mono wrap">{target}</span>;
  if (path === undefined || !/^[\da-f-]{36}$/.test(target)) return words;
  return <a href={path === "actions" ? "#/actions" : href([path, target])}>{words}</a>;
}
