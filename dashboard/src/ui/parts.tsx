// Pieces that every screen is made of.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { CallError } from "../api/call.ts";
import type { Data } from "../api/use-data.ts";
import { now, span, time } from "../format.ts";
import { me } from "../frame/me.ts";
import { toast } from "../frame/toasts.tsx";
import { Icon } from "./icon.tsx";

export function Screen({
  title,
  lead,
  actions,
  children,
}: {
  title: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const environment = me.value?.environment ?? null;
  useEffect(() => {
    document.title = `${title} · Holdfast${environment === null ? "" : ` ${environment}`}`;
  }, [title, environment]);
  return (
    <>
      <header class="screen-head">
        <div class="screen-title">
          <h1 tabIndex={-1}>{title}</h1>
          {lead}
        </div>
        {actions && <div class="row">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Panel({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-label={title}>
      <header class="panel-head">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** What there is; or why there is nothing yet. */
export function Loaded<T>({ data, children }: { data: Data<T>; children: (value: T) => ComponentChildren }) {
  const { value, error } = data;
  return (
    <>
      {error && <Trouble error={error} isStale={value !== undefined} />}
      {value !== undefined ? children(value) : !error && <Loading />}
    </>
  );
}

export function Loading() {
  return (
    <p class="quiet pad" role="status">
      Loading …
    </p>
  );
}

export function Trouble({ error, isStale = false }: { error: CallError; isStale?: boolean }) {
  return (
    <div class="notice notice-bad" role="alert">
      <strong>{error.message}</strong> {error.hint} {isStale && "What you see is from before."}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** "3m 12s ago", with the moment itself behind it. */
export function Ago({ at, ahead = false }: { at: string | null; ahead?: boolean }) {
  if (at === null) return <span class="quiet">–</span>;
  const ms = now.value - Date.parse(at);
  return (
    <time dateTime={at} title={time(at)}>
      {ms < 0 ? (ahead || ms < -2_000 ? `in ${span(-ms)}` : "now") : ahead && ms < 5_000 ? "now" : `${span(ms)} ago`}
    </time>
  );
}

export function At({ at }: { at: string | null }) {
  return at === null ? (
    <span class="quiet">–</span>
  ) : (
    <time dateTime={at} title={at}>
      {time(at)}
    </time>
  );
}

export function Copy({ text, label }: { text: string; label: string }) {
  return (
    <button type="button" class="button button-small" title={text} onClick={() => void copy(text, label)}>
      <Icon name="copy" />
      {label}
    </button>
  );
}

export async function copy(text: string, label: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS a page has no clipboard: the old way.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`Copied: ${label}`);
}

export function Card({
  label,
  value,
  note,
  tone,
  to,
}: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: "bad" | "warn";
  to?: string;
}) {
  const inside = (
    <>
      <span class="card-label">{label}</span>
      <span class="card-value">{value}</span>
      <span class="card-note">{note ?? "\u00a0"}</span>
    </>
  );
  const look = `card${tone ? ` card-${tone}` : ""}`;
  return to === undefined ? (
    <div class={look}>{inside}</div>
  ) : (
    <a class={look} href={to}>
      {inside}
    </a>
  );
}

/** Parts of a whole, each with its word: the colours only help. */
export function Segments({ parts, label }: { parts: { name: string; value: number; look: string }[]; label: string }) {
  const all = parts.reduce((sum, { value }) => sum + value, 0);
  const told = parts.filter(({ value }) => value > 0).map(({ name, value }) => `${value} ${name}`);
  return (
    <span class="segments" role="img" aria-label={`${label}: ${told.join(", ") || "nothing"}`}>
      {all > 0 &&
        parts.map(({ name, value, look }) =>
          value > 0 ? (
            <span key={name} class={`segment segment-${look}`} style={{ flexGrow: value }} title={`${value} ${name}`} />
          ) : null,
        )}
    </span>
  );
}
