// What a configuration file may hold. A faulty one is refused with the file's name, the key, the value and the fix.
import { type App, defineApp } from "../apps/define-app.ts";
import { HoldfastError } from "../errors.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { CONFIG_KNOWN, type HoldfastConfig } from "./config.ts";
import { EXIT } from "./exit-codes.ts";
import { Problem } from "./problem.ts";

const KINDS_OF_VALUE: Partial<Record<keyof HoldfastConfig, { type: "string" | "number" | "boolean"; fix: string }>> = {
  concurrency: { type: "number", fix: "Give a whole number: concurrency: 20." },
  database: { type: "string", fix: 'Give a text: database: "postgres://…"; better, set DATABASE_URL.' },
  data: { type: "string", fix: 'Give a folder: data: "./.holdfast".' },
  schema: { type: "string", fix: 'Give a text: schema: "holdfast".' },
  host: { type: "string", fix: 'Give a text: host: "127.0.0.1".' },
  migrate: { type: "boolean", fix: "Write migrate: false if only holdfast migrate may change the schema." },
  poolSize: { type: "number", fix: "Give a whole number: poolSize: 20." },
  callTimeout: { type: "string", fix: 'Give a duration: callTimeout: "10s".' },
  environment: { type: "string", fix: 'Give a short name: environment: "production".' },
  port: { type: "number", fix: "Give a number: port: 7070." },
};

export function checkConfig(name: string, config: unknown): HoldfastConfig {
  const refuse = (what: string, hint: string): Problem => new Problem(`${name} ${what}`, hint, EXIT.usage);
  if (config === null || typeof config !== "object" || Array.isArray(config)) {
    throw refuse("does not export a configuration.", "Write export default defineConfig({ jobs: [myJob] }).");
  }
  // What an editor goes by: `holdfast config schema`.
  const { $schema: _, ...given }: Record<string, unknown> = { ...config };
  refuseUnknown(name, given, CONFIG_KNOWN);
  for (const [key, { type, fix }] of Object.entries(KINDS_OF_VALUE)) {
    const value = given[key];
    if (value === undefined || (typeof value === type && value !== "")) continue;
    // A database URL may hold a password.
    throw refuse(`has ${key}: ${key === "database" ? "something that is no text" : shown(value)}.`, fix);
  }
  const { allowedHosts, jobs, apps } = given;
  if (allowedHosts !== undefined && !isListOf(allowedHosts, (host) => typeof host === "string")) {
    throw refuse(
      `has allowedHosts: ${shown(allowedHosts)}.`,
      'Give a list of names: allowedHosts: ["jobs.example.com"].',
    );
  }
  if (jobs !== undefined) checkJobs(jobs, refuse);
  if (apps !== undefined) checkApps(name, apps, refuse);
  return given;
}

type Refuse = (what: string, hint: string) => Problem;

function checkJobs(jobs: unknown, refuse: Refuse): void {
  if (!Array.isArray(jobs)) throw refuse("has jobs that are not a list.", "Write jobs: [myJob, anotherJob].");
  const names: string[] = [];
  for (const [index, job] of jobs.entries()) {
    if (!isKind(job)) {
      throw refuse(`has no job kind at jobs[${index}].`, "Put there what defineJob() returned.");
    }
    if (names.includes(job.kind)) throw refuse(`lists the kind "${job.kind}" twice.`, "List each kind once.");
    names.push(job.kind);
  }
}

function checkApps(name: string, apps: unknown, refuse: Refuse): void {
  if (!Array.isArray(apps)) throw refuse("has apps that are not a list.", "Write apps: [myApp, anotherApp].");
  const names: string[] = [];
  for (const [index, app] of apps.entries()) {
    if (app === null || typeof app !== "object" || !("name" in app)) {
      throw refuse(`has no app at apps[${index}]: ${shown(app)}.`, "Put there what defineApp() returned.");
    }
    const checked = asApp(`${name}, apps[${index}]`, app as App);
    if (names.includes(checked.name)) throw refuse(`lists the app "${checked.name}" twice.`, "List each app once.");
    names.push(checked.name);
  }
}

/** One that did not go through defineApp() is checked all the same. */
function asApp(where: string, app: App): App {
  try {
    return defineApp(app);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    throw new Problem(`${where}: ${error.message}`, error.hint, EXIT.usage, { cause: error });
  }
}

function isKind(job: unknown): job is AnyJobKind {
  return job !== null && typeof job === "object" && "kind" in job && "run" in job && "retryPolicy" in job;
}

function isListOf(value: unknown, fits: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(fits);
}

function shown(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? typeof value).slice(0, 100);
  } catch {
    return "something that cannot be shown";
  }
}
