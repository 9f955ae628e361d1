// Who has an embedded folder, as anybody on this machine can ask: the holder's socket answers with one line of JSON.
import { createHash } from "node:crypto";
import { mkdtemp, readdir, realpath, rm, symlink } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FolderUnusable } from "../errors.ts";

/** What a holder answers to whoever connects. */
export interface Holder {
  pid: number;
  host: string;
  since: string;
  command: string;
  id: string;
  state: "claiming" | "holding";
  /** Where its HTTP API answers, as called from its own machine; null if it serves none. */
  url: string | null;
}

export const SOCKET_NAME = /^lock-[0-9a-f]{16}\.sock$/;
/** A holder that was stopped (SIGSTOP) or is busy does not answer; it still holds. */
const ANSWER_WITHIN_MS = 600;
/** Whoever wants to talk to the holder can wait for a busy one: without an answer there is nobody to talk to. */
const FOUND_WITHIN_MS = 3_000;
/** sun_path has 104 bytes on macOS and 108 on Linux; Node cuts off what does not fit without a word. */
const LONGEST_SOCKET_PATH = 100;

/** Whoever holds the folder now; null if nobody does, or nobody answers. Changes nothing. */
export async function findHolder(folder: string): Promise<Holder | null> {
  const real = await realpath(folder).catch(() => null);
  if (real === null) return null;
  const name = kernelName(real);
  const answer = name === null ? "dead" : await ask(name, FOUND_WITHIN_MS);
  if (typeof answer === "object") return answer;
  const near = await shortWayTo(real).catch(() => null);
  if (near === null) return null;
  try {
    for (const file of await readdir(real)) {
      if (!SOCKET_NAME.test(file)) continue;
      const told = await ask(join(near.path, file), FOUND_WITHIN_MS);
      if (typeof told === "object" && told.state === "holding") return told;
    }
    return null;
  } finally {
    await near.remove();
  }
}

export function describeHolder({ pid, command, host, since }: Holder): string {
  return `process ${pid} (${printable(command)}) on host ${printable(host)} since ${clock(since)}`;
}

export function kernelName(folder: string): string | null {
  const hash = createHash("sha256").update(folder).digest("hex");
  if (process.platform === "win32") return `\\\\.\\pipe\\holdfast-${hash}`;
  if (process.platform !== "linux") return null;
  // Exactly as long as the kernel's field: Node 20 pads shorter names with zeros, later ones do not, and the two would
  // not meet.
  return `\0holdfast:${hash}`.padEnd(108, ".");
}

/** A path to the folder that fits into a socket's address: the folder itself, or a link to it for the time being. */
export async function shortWayTo(folder: string): Promise<{ path: string; remove(): Promise<void> }> {
  if (fits(folder)) return { path: folder, remove: async () => {} };
  const place = await mkdtemp(join(tmpdir(), "hf-"));
  const path = join(place, "f");
  await symlink(folder, path);
  const remove = () => rm(place, { recursive: true, force: true });
  if (fits(path)) return { path, remove };
  await remove();
  const hint = "Use a shorter path for the folder, or for temporary files (TMPDIR).";
  throw new FolderUnusable(`The path ${folder} is too long for the socket that locks it.`, hint);
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, "lock-0123456789abcdef.sock")) <= LONGEST_SOCKET_PATH;
}

export function ask(path: string, withinMs = ANSWER_WITHIN_MS): Promise<Holder | "dead" | "silent"> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    let text = "";
    const settle = (answer: Holder | "dead" | "silent"): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => settle("silent"), withinMs);
    socket.setEncoding("utf8");
    socket.on("data", (more: string) => (text += more));
    socket.on("end", () => settle(readHolder(text) ?? "silent"));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      settle(error.code === "ECONNREFUSED" || error.code === "ENOENT" ? "dead" : "silent"),
    );
  });
}

function readHolder(text: string): Holder | null {
  try {
    const value: unknown = JSON.parse(text);
    return isHolder(value) ? { ...value, url: typeof value.url === "string" ? value.url : null } : null;
  } catch {
    return null;
  }
}

function isHolder(value: unknown): value is Holder {
  if (typeof value !== "object" || value === null) return false;
  return ["pid", "id", "state"].every((name) => name in value);
}

/** "12:03", with the day if it is not today's. */
function clock(since: string): string {
  const then = new Date(since);
  if (Number.isNaN(then.getTime())) return "an unknown time";
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (then.toDateString() === new Date().toDateString()) return time;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

function printable(text: unknown): string {
  return String(text).replace(/[^\x20-\x7e\u00a0-\uffff]/g, "?");
}
