// A new job by hand: a form where the kind's schema can be one, JSON otherwise.
import { useEffect, useState } from "preact/hooks";
import { call, CallError, type Output } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { may } from "../frame/me.ts";
import { maskedPaths, prettyJson } from "../json-text.ts";
import { toast } from "../frame/toasts.tsx";
import { href, place, replaceQuery } from "../router.ts";
import { Empty, Loaded, Panel, Screen } from "../ui/parts.tsx";

type Kind = Output<"listKinds">["kinds"][number];

interface Field {
  name: string;
  type: "text" | "number" | "boolean" | "choice";
  isWanted: boolean;
  about: string;
  choices: string[];
}

/** The fields of a flat object; null where a form would say less than JSON. */
export function fieldsOf(schema: Record<string, unknown> | null): Field[] | null {
  if (schema?.["type"] !== "object") return null;
  const properties = (schema["properties"] ?? {}) as Record<
    string,
    { type?: string; enum?: unknown[]; description?: string }
  >;
  const wanted = (schema["required"] ?? []) as string[];
  const fields: Field[] = [];
  for (const [name, { type, enum: choices, description = "" }] of Object.entries(properties)) {
    const rest = { name, isWanted: wanted.includes(name), about: description };
    if (choices?.every((choice) => typeof choice === "string")) fields.push({ ...rest, type: "choice", choices });
    else if (type === "string") fields.push({ ...rest, type: "text", choices: [] });
    else if (type === "number" || type === "integer") fields.push({ ...rest, type: "number", choices: [] });
    else if (type === "boolean") fields.push({ ...rest, type: "boolean", choices: [] });
    else return null;
  }
  return fields.length === 0 ? null : fields;
}

export function EnqueueScreen() {
  const data = useData("kinds", (signal) => call("listKinds", { signal }));
  const asked = place.value.query.get("kind");
  return (
    <Screen title="Enqueue">
      {!may("operator") && <div class="notice">Your role looks on; enqueueing needs an operator’s.</div>}
      <Loaded data={data}>
        {({ kinds }) => {
          const kind = kinds.find((each) => each.kind === asked) ?? kinds[0];
          return kind === undefined ? (
            <Empty title="This server knows no kinds.">
              <p>
                List them in <code>holdfast.config.ts</code>.
              </p>
            </Empty>
          ) : (
            <>
              <label class="field">
                <span>Kind</span>
                <select
                  class="input"
                  value={kind.kind}
                  onChange={(event) => replaceQuery({ kind: event.currentTarget.value, like: undefined })}
                >
                  {kinds.map(({ kind: name }) => (
                    <option key={name} value={name}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
              <Form key={kind.kind} kind={kind} />
            </>
          );
        }}
      </Loaded>
    </Screen>
  );
}

function Form({ kind }: { kind: Kind }) {
  const fields = fieldsOf(kind.schema);
  const like = place.value.query.get("like");
  const [values, fill] = useState<Record<string, string>>({});
  const [json, writeJson] = useState("{}");
  const [isJson, showJson] = useState(fields === null || like !== null);
  const [more, setMore] = useState({ key: "", delay: "", priority: "", group: "" });
  const [answer, tell] = useState<{ text: string; isBad: boolean; id?: string } | null>(null);
  useEffect(() => {
    if (like === null) return;
    void call("readJob", { params: { id: like } }).then(
      ({ payloadText }) => {
        writeJson(prettyJson(payloadText));
        const masked = maskedPaths(payloadText);
        if (masked.length > 0) {
          tell({
            text: `Masked here: ${masked.join(", ")}. Write what belongs there, or the job gets ***.`,
            isBad: true,
          });
        }
      },
      () => undefined,
    );
  }, [like]);

  const send = async () => {
    // As it was written: the server refuses a number that would be rounded, and it has to see it for that.
    const payload = isJson || fields === null ? json : JSON.stringify(payloadOf(fields, values));
    try {
      JSON.parse(payload);
    } catch (error) {
      tell({ text: `The payload is not JSON: ${String(error)}`, isBad: true });
      return;
    }
    const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value.trim() !== ""));
    const rest = JSON.stringify({
      kind: kind.kind,
      ...given,
      ...(given["priority"] ? { priority: Number(given["priority"]) } : {}),
    });
    try {
      const bodyText = `{"payload":${payload},${rest.slice(1)}`;
      const { id, created, conflict } = await call("enqueueJob", { bodyText });
      const text = created
        ? "Accepted."
        : conflict
          ? "This key has a job already, with another payload: the first one stays."
          : "This key has a job already: it is the same one.";
      tell({ text, isBad: conflict, id });
      if (created) toast("Accepted", { to: href(["jobs", id]) });
    } catch (error) {
      tell({ text: error instanceof CallError ? `${error.message} ${error.hint}` : String(error), isBad: true });
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Panel
        title="Payload"
        aside={
          fields !== null && (
            <button type="button" class="button button-small" aria-pressed={isJson} onClick={() => showJson(!isJson)}>
              {isJson ? "As a form" : "As JSON"}
            </button>
          )
        }
      >
        <div class="form">
          {isJson || fields === null ? (
            <label class="field">
              <span>JSON</span>
              <textarea
                class="input mono"
                rows={8}
                spellcheck={false}
                value={json}
                onInput={(event) => writeJson(event.currentTarget.value)}
              />
            </label>
          ) : (
            fields.map((field) => (
              <OneField
                key={field.name}
                field={field}
                value={values[field.name] ?? ""}
                onChange={(value) => fill({ ...values, [field.name]: value })}
              />
            ))
          )}
        </div>
      </Panel>
      <Panel title="More">
        <div class="form form-two">
          {(
            [
              ["key", "Key", "order-17: one key is one job"],
              ["delay", "Delay", "30s, 5m, 1h"],
              ["priority", "Priority", "-100 to 100, higher is sooner"],
              ["group", "Group", "runs one at a time, in order"],
            ] as const
          ).map(([name, label, hint]) => (
            <label key={name} class="field">
              <span>{label}</span>
              <input
                class="input"
                type="text"
                placeholder={hint}
                value={more[name]}
                onInput={(event) => setMore({ ...more, [name]: event.currentTarget.value })}
              />
            </label>
          ))}
        </div>
      </Panel>
      <Duplicate kind={kind.kind} keyGiven={more.key.trim()} sent={answer?.id} />
      {answer && (
        <div class={`notice${answer.isBad ? " notice-bad" : " notice-good"}`} role="status">
          {answer.text} {answer.id && <a href={href(["jobs", answer.id])}>Open the job</a>}
        </div>
      )}
      <div class="row row-end">
        <button type="submit" class="button button-main" disabled={!may("operator")}>
          Enqueue
        </button>
      </div>
    </form>
  );
}

/** Before it is sent: what this key stands for already. */
function Duplicate({ kind, keyGiven, sent }: { kind: string; keyGiven: string; sent: string | undefined }) {
  const [asked, ask] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => ask(keyGiven), 300);
    return () => clearTimeout(timer);
  }, [keyGiven]);
  const { value } = useData(`key ${kind} ${asked}`, async (signal) =>
    asked === "" ? null : await call("readKey", { signal, query: { kind, key: asked } }),
  );
  const id = value?.jobId;
  if (!id || asked !== keyGiven || id === sent) return null;
  return (
    <div class="notice notice-warn" role="status">
      This will be a duplicate: the key stands for <a href={href(["jobs", id])}>a job</a> already, and no other is made.
    </div>
  );
}

function OneField({
  field: { name, type, isWanted, about, choices },
  value,
  onChange,
}: {
  field: Field;
  value: string;
  onChange(value: string): void;
}) {
  const label = (
    <span>
      {name} {isWanted ? "" : <span class="quiet">(may be empty)</span>} {about && <span class="quiet">{about}</span>}
    </span>
  );
  if (type === "boolean" || type === "choice") {
    const all = type === "boolean" ? ["true", "false"] : choices;
    return (
      <label class="field">
        {label}
        <select
          class="input"
          value={value}
          required={isWanted}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          <option value="">–</option>
          {all.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <label class="field">
      {label}
      <input
        class="input"
        type={type === "number" ? "number" : "text"}
        step="any"
        value={value}
        required={isWanted}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </label>
  );
}

function payloadOf(fields: Field[], values: Record<string, string>): Record<string, unknown> {
  const filled = fields.filter(({ name }) => (values[name] ?? "") !== "");
  return Object.fromEntries(
    filled.map(({ name, type }) => [
      name,
      type === "number" ? Number(values[name]) : type === "boolean" ? values[name] === "true" : values[name],
    ]),
  );
}
