// Settings for people to read: on the command line, and on the dashboard's system page. Secrets are masked.
import type { Found } from "./env.ts";
import { maskUrl } from "./mask.ts";
import { printable } from "./printable.ts";
import type { Settings } from "./settings.ts";

export type ShownValue = string | number | boolean | readonly string[] | null;

export function shownSettings(settings: Settings) {
  const { database, token, jobs, apps, inbox, queues, environment, healthPort } = settings;
  return {
    ...settings,
    database: {
      value: database.value === undefined ? "embedded, in data" : maskUrl(database.value),
      source: database.source,
    },
    token: { value: token.value === undefined ? null : `*** (${token.value.length} characters)`, source: token.source },
    environment: { value: environment.value ?? null, source: environment.source },
    healthPort: { value: healthPort.value ?? null, source: healthPort.source },
    jobs: { value: jobs.value.map((job) => job.kind), source: jobs.source },
    apps: { value: apps.value.map((app) => app.name), source: apps.source },
    inbox: {
      value: Object.entries(inbox.value).map(([name, value]) => `${name} ${String(value)}`),
      source: inbox.source,
    },
    queues: {
      value: Object.entries(queues.value).map(([name, value]) => `${name} ${JSON.stringify(value)}`),
      source: queues.source,
    },
  } satisfies Record<string, Found<ShownValue>>;
}

export function textOfSetting(value: ShownValue): string {
  const text = typeof value === "object" ? (value?.join(", ") ?? "") : String(value);
  return text === "" ? "-" : printable(text);
}

export function listedSettings(settings: Settings): { name: string; value: string; source: string }[] {
  return Object.entries(shownSettings(settings)).map(([name, { value, source }]) => ({
    name,
    value: textOfSetting(value),
    source,
  }));
}
