// One process at a time in an embedded folder. The lock is a listening socket, so it belongs to the kernel: it ends
// with the process that holds it, however that ends, and no clock ever takes it from one that lives.
//
// Two sockets, because each sees what the other cannot:
// - a name outside the file system (Linux: an abstract socket; Windows: a named pipe) decides between processes of one
//   machine at once;
// - a socket file inside the folder is seen by containers that share the volume, and by macOS. Its name is random
//   and never used again, so removing a dead one can never remove a live one.
// Machines that share a folder over a network file system do not see each other.
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, rename, rm, symlink, unlink } from "node:fs/promises";
import { type Server, connect, createServer } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { FolderLocked, FolderUnusable } from "../errors.ts";
import { codeOf } from "./retryable.ts";

export interface LockOptions {
  /** What the holder is, for the message that a second process gets: "holdfast dev". Default: the process's title. */
  command?: string;
  /** Told when the folder cannot hold a socket, so that only processes of this machine are kept out. */
  onTrouble?: (error: Error) => void;
  /** false: only the socket in the folder, as on macOS. For tests: it is what a container on a shared volume sees. */
  kernelName?: boolean;
}

export interface FolderLock {
  release(): Promise<void>;
}

/** What a holder answers to whoever connects. */
interface Holder {
  pid: number;
  host: string;
  since: string;
  command: string;
  id: string;
  state: "claiming" | "holding";
}

const HINT =
  "Stop that process, use its HTTP API instead, or set DATABASE_URL to a PostgreSQL server, which any number of " +
  "processes can share.";
const SOCKET_NAME = /^lock-[0-9a-f]{16}\.sock$/;
/** A holder that was stopped (SIGSTOP) or is busy does not answer; it still holds. */
const ANSWER_WITHIN_MS = 600;
const DECIDE_WITHIN_MS = 1_000;
/** sun_path has 104 bytes on macOS and 108 on Linux; Node cuts off what does not fit without a word. */
const LONGEST_SOCKET_PATH = 100;

/** `folder` is an existing folder, with symbolic links resolved. */
export async function lockFolder(folder: string, options: LockOptions = {}): Promise<FolderLock> {
  const open = foldersOfThisProcess();
  if (open.has(folder)) {
    const hint = "Share the one that is open; for a database of its own, give it another folder.";
    throw new FolderLocked(`This process has already opened the folder ${folder}.`, hint);
  }
  open.add(folder);
  const self: Holder = {
    pid: process.pid,
    host: hostname(),
    since: new Date().toISOString(),
    command: (options.command ?? process.title).slice(0, 200),
    id: randomBytes(8).toString("hex"),
    state: "claiming",
  };
  const held: (() => Promise<void>)[] = [];
  const letGo = async (): Promise<void> => {
    await Promise.all(held.splice(0).map((end) => end()));
    open.delete(folder);
  };
  try {
    const name = options.kernelName === false ? null : kernelName(folder);
    if (name !== null) held.push(await takeName(folder, name, self));
    if (process.platform !== "win32") {
      try {
        held.push(await takeFolder(folder, self));
      } catch (error) {
        if (name === null || error instanceof FolderLocked) throw error;
        const message = `The folder ${folder} cannot hold a socket: containers that share it are not kept out.`;
        options.onTrouble?.(new Error(message, { cause: error }));
      }
    }
    self.state = "holding";
    return { release: letGo };
  } catch (error) {
    await letGo();
    throw error;
  }
}

/** Two copies of this package in one process share it. */
function foldersOfThisProcess(): Set<string> {
  const shared = globalThis as { [key: symbol]: Set<string> | undefined };
  return (shared[Symbol.for("holdfast.folders")] ??= new Set());
}

function kernelName(folder: string): string | null {
  const hash = createHash("sha256").update(folder).digest("hex");
  if (process.platform === "win32") return `\\\\.\\pipe\\holdfast-${hash}`;
  if (process.platform !== "linux") return null;
  // Exactly as long as the kernel's field: Node 20 pads shorter names with zeros, later ones do not, and the two would
  // not meet.
  return `\0holdfast:${hash}`.padEnd(108, ".");
}

async function takeName(folder: string, name: string, self: Holder): Promise<() => Promise<void>> {
  const giveUpAt = performance.now() + DECIDE_WITHIN_MS;
  for (;;) {
    try {
      const server = await listen(name, self);
      return () => close(server);
    } catch (error) {
      if (codeOf(error) !== "EADDRINUSE") throw error;
    }
    const answer = await ask(name);
    if (answer !== "dead") throw locked(folder, answer);
    // Its holder ended between the two calls.
    if (performance.now() > giveUpAt) throw locked(folder, "silent");
    await delay(10);
  }
}

/**
 * Everyone who wants the folder first shows a listening socket, then looks at the others': dead ones are removed, a
 * holder wins, and of two that claim at the same moment the one with the smaller id does. Whoever came first cannot
 * have missed the other *and* be missed by it.
 */
async function takeFolder(folder: string, self: Holder): Promise<() => Promise<void>> {
  const near = await shortWayTo(folder);
  try {
    const hidden = `lock-${self.id}.tmp`;
    const shown = `lock-${self.id}.sock`;
    const server = await listen(join(near.path, hidden), self);
    const end = async (): Promise<void> => {
      await unlink(join(folder, shown)).catch(() => {});
      await close(server);
    };
    try {
      // Between bind and listen a socket refuses connections and would be taken for a dead one: hence the two names.
      await rename(join(folder, hidden), join(folder, shown));
      await waitForOthers(folder, near.path, shown, self);
      return end;
    } catch (error) {
      await unlink(join(folder, hidden)).catch(() => {});
      await end();
      throw error;
    }
  } finally {
    await near.remove();
  }
}

async function waitForOthers(folder: string, near: string, own: string, self: Holder): Promise<void> {
  const giveUpAt = performance.now() + DECIDE_WITHIN_MS;
  for (;;) {
    let undecided = false;
    for (const name of await readdir(folder)) {
      if (name === own || !SOCKET_NAME.test(name)) continue;
      const answer = await ask(join(near, name));
      if (answer === "dead") await unlink(join(folder, name)).catch(() => {});
      else if (answer === "silent" || answer.state === "holding" || answer.id < self.id) throw locked(folder, answer);
      else undecided = true;
    }
    if (!undecided) return;
    if (performance.now() > giveUpAt) throw locked(folder, "silent");
    await delay(10);
  }
}

/** A path to the folder that fits into a socket's address: the folder itself, or a link to it for the time being. */
async function shortWayTo(folder: string): Promise<{ path: string; remove(): Promise<void> }> {
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

function listen(path: string, self: Holder): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.end(`${JSON.stringify(self)}\n`);
    });
    server.once("error", reject);
    // exclusive: in a cluster, the primary would otherwise hand the same socket to every process that asks.
    // All: who may not connect could not tell a dead one from a live one. An abstract socket has no such rights.
    const all = !path.startsWith("\0");
    server.listen({ path, exclusive: true, readableAll: all, writableAll: all }, () => {
      server.off("error", reject);
      server.on("error", () => {});
      server.unref();
      resolve(server);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function ask(path: string): Promise<Holder | "dead" | "silent"> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    let text = "";
    const settle = (answer: Holder | "dead" | "silent"): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => settle("silent"), ANSWER_WITHIN_MS);
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
    return isHolder(value) ? value : null;
  } catch {
    return null;
  }
}

function isHolder(value: unknown): value is Holder {
  if (typeof value !== "object" || value === null) return false;
  return ["pid", "id", "state"].every((name) => name in value);
}

function locked(folder: string, holder: Holder | "silent"): FolderLocked {
  if (holder === "silent") {
    const message = `The folder ${folder} is in use by a process that does not answer: it is stopped, or very busy.`;
    return new FolderLocked(message, HINT);
  }
  const { pid, command, host, since } = holder;
  const who = `process ${pid} (${printable(command)}) on host ${printable(host)} since ${clock(since)}`;
  return new FolderLocked(`The folder ${folder} is in use by ${who}.`, HINT);
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
