// Fields that several devices write, each for itself and perhaps offline: of each field the newest write stays. A clock that
// runs ahead counts as now, so that it cannot keep a field for itself. Of two writes of the same moment the one with the
// greater name of its writer stays, then the greater value: whoever merges, in whatever order, gets the same.

/** When a field was written: a plain time, or a time with who and from where. Both shapes are in use. */
export type FieldMeta = string | { at?: unknown; actor?: unknown; origin?: unknown };

export interface FieldTime {
  at: string;
  by: string;
}

export interface FieldState {
  fields: Record<string, unknown>;
  times: Record<string, FieldTime>;
}

export interface FieldWrite {
  fields: Record<string, unknown>;
  /** By field; one without counts as written now. */
  meta?: Record<string, FieldMeta>;
  /** Who writes, if the meta does not say. */
  by: string;
  now: Date;
}

/** In milliseconds since 1970; NaN: there is none, or it cannot be read. */
export function fieldTime(meta: FieldMeta | undefined): number {
  const at = typeof meta === "object" && meta !== null ? meta.at : meta;
  return typeof at === "string" ? Date.parse(at) : NaN;
}

function writerOf(meta: FieldMeta | undefined, by: string): string {
  const actor = typeof meta === "object" && meta !== null ? meta.actor : undefined;
  if (typeof actor === "string") return actor;
  return actor === undefined || actor === null ? by : JSON.stringify(actor);
}

/** The fields after the write, and which of them it changed. */
export function mergeFields(state: FieldState, write: FieldWrite): FieldState & { changed: string[] } {
  const fields = { ...state.fields };
  const times = { ...state.times };
  const changed: string[] = [];
  const now = write.now.getTime();
  for (const [name, value] of Object.entries(write.fields)) {
    const meta = write.meta?.[name];
    const told = fieldTime(meta);
    const at = Number.isNaN(told) ? now : Math.min(told, now);
    const by = writerOf(meta, write.by);
    const known = times[name];
    if (known && !wins({ at, by, value }, { at: Date.parse(known.at), by: known.by, value: fields[name] })) continue;
    fields[name] = value;
    times[name] = { at: new Date(at).toISOString(), by };
    changed.push(name);
  }
  return { fields, times, changed };
}

interface Version {
  at: number;
  by: string;
  value: unknown;
}

function wins(left: Version, right: Version): boolean {
  if (left.at !== right.at) return left.at > right.at;
  if (left.by !== right.by) return left.by > right.by;
  return (JSON.stringify(left.value) ?? "") > (JSON.stringify(right.value) ?? "");
}
