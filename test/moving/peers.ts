// The real pg-boss, graphile-worker and BullMQ, where the benchmarks have installed them (`npm ci --prefix bench`), on the Node that came
// with them. Where they are not there, `peerMissing` says so, and tests are skipped with it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const bench = join(import.meta.dirname, "../../bench");
const node = join(bench, "node_modules/.bin/node");

export function peerMissing(name: string): string | undefined {
  const there = existsSync(join(bench, "node_modules", name)) && existsSync(node);
  return there ? undefined : `${name} is not installed: npm ci --prefix bench`;
}

/** Runs children/<file> with these arguments; what it prints is JSON. It finds the benchmarks' packages by its folder. */
export async function runPeer(file: string, ...args: string[]): Promise<unknown> {
  const code = readFileSync(join(import.meta.dirname, "children", file), "utf8");
  return await runNode(node, ["--input-type=module", "-e", code, "--", ...args], bench);
}

export async function runNode(
  program: string,
  args: string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<unknown> {
  const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let [out, said] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`It ended with ${code}: ${said.slice(-2_000)}`);
  return JSON.parse(out.trim().split("\n").at(-1) ?? "null");
}
