// The command line as its users have it: child processes in folders of their own, output and exit codes.
import { type ChildProcess, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyInitialised } from "../support/initialised.ts";
import { QUICK_ENGINE } from "../support/quick-engine.ts";
import { quickFolder } from "../support/quick-folder.ts";

export const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface Output {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string;
}

export interface Running {
  readonly pid: number;
  /** The fields of its "Ready" line. */
  readonly ready: {
    url: string;
    data: string;
    tier: string;
    promise: string;
    kinds: string[];
    apps?: string[];
    try: string[];
  };
  readonly stderr: string;
  /** Resolves when this text was said, past lines included. */
  says(text: string): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Output>;
}

const children = new Set<ChildProcess>();
const folders: string[] = [];

/** Only what a test gives, whatever the shell that runs the tests has set. */
function cleanEnv(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(HOLDFAST_|DATABASE_URL|NODE_ENV|VITEST|FORCE_COLOR)/.test(name),
  );
  return { ...Object.fromEntries(kept), ...env };
}

export async function makeFolder(): Promise<string> {
  const folder = quickFolder("holdfast-cli-");
  folders.push(folder);
  return folder;
}

/** With an embedded database that was used before: for tests whose subject is not the first start, which takes seconds. */
export async function makeUsedFolder(data = ".holdfast"): Promise<string> {
  const folder = await makeFolder();
  await copyInitialised(join(folder, data));
  return folder;
}

function launch(args: readonly string[], { cwd = tmpdir(), env, stdin = "" }: RunOptions, program = main) {
  const child = spawn(process.execPath, [...QUICK_ENGINE, program, ...args], {
    cwd,
    env: cleanEnv(env),
    stdio: "pipe",
  });
  children.add(child);
  const output: Output = { code: null, stdout: "", stderr: "" };
  const hearers = new Set<() => void>();
  const hear = (name: "stdout" | "stderr") => (text: string) => {
    output[name] += text;
    for (const hearer of hearers) hearer();
  };
  child.stdout.setEncoding("utf8").on("data", hear("stdout"));
  child.stderr.setEncoding("utf8").on("data", hear("stderr"));
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const ended = new Promise<Output>((resolve) => {
    child.once("close", (code, signal) => {
      children.delete(child);
      output.code = code;
      if (signal !== null) output.stderr += `\n(ended by ${signal})`;
      for (const hearer of hearers) hearer();
      resolve(output);
    });
  });
  return { child, output, ended, hearers };
}

export function run(args: readonly string[], options: RunOptions = {}): Promise<Output> {
  return launch(args, options).ended;
}

/** A server, ready. Fails with what it said if it ends before. */
export function start(args: readonly string[], options: RunOptions = {}): Promise<Running> {
  return startFrom(main, args, options);
}

/** The same, with the command of another place. */
export async function startFrom(program: string, args: readonly string[], options: RunOptions = {}): Promise<Running> {
  const running = spawnHoldfast(args, options, program);
  await running.says('"message":"Ready"');
  const line = running.stderr.split("\n").find((text) => text.includes('"message":"Ready"'))!;
  const ready = JSON.parse(line) as Running["ready"];
  return Object.defineProperty({ ...running, ready }, "stderr", { get: () => running.stderr });
}

/** A command that goes on until somebody ends it. */
export function spawnHoldfast(
  args: readonly string[],
  options: RunOptions = {},
  program = main,
): Omit<Running, "ready"> {
  const { child, output, ended, hearers } = launch(args, options, program);
  return {
    pid: child.pid!,
    get stderr() {
      return output.stderr;
    },
    says: (text) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => settle(`it did not say ${JSON.stringify(text)}`), 60_000);
        const look = (): void => {
          if (output.stderr.includes(text)) settle();
          else if (child.exitCode !== null || child.signalCode !== null) settle("it ended");
        };
        const settle = (why?: string): void => {
          clearTimeout(timer);
          hearers.delete(look);
          if (why === undefined) resolve();
          else reject(new Error(`${args.join(" ")}: ${why}:\n${output.stderr}`));
        };
        hearers.add(look);
        look();
      }),
    kill: (signal) => void child.kill(signal),
    ended,
  };
}

/** After the tests of a file: whatever is still there. */
export async function cleanUp(): Promise<void> {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
}
