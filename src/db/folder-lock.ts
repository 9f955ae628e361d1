// One process at a time in an embedded folder. The lock is a listening socket, so it belongs to the kernel: it ends
// with the process that holds it, however that ends, and no clock ever takes it from one that lives.
//
// Two sockets, because each sees what the other cannot:
// - a name outside the file system (Linux: an abstract socket; Windows: a named pipe) decides between processes of one
//   machine at once;
// - a socket file inside the folder is seen by containers that share the volume, and by macOS. Its name is random
//   and never used again, so removing a dead one can never remove a live one.
// Machines that share a folder over a network file system do not see each other.
import { randomBytes } from "node:crypto";
import { readdir, rename, unlink } from "node:fs/promises";
import { type Server, createServer } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { FolderLocked } from "../errors.ts";
import { ask, describeHolder, type Holder, kernelName, shortWayTo, SOCKET_NAME } from "./folder-holder.ts";
import { codeOf } from "./retryable.ts";

export interface LockOptions {
  /** What the holder is, for the message that a second process gets: "holdfast dev". Default: the process's title. */
  command?: string;
  /** Told when the folder cannot hold a socket, so that only processes of this machine are kept out. */
  onTrouble?: (error: Error) => void;
  /** false: only the socket in the folder, as on macOS. For tests: it is what a container on a shared volume sees. */
  kernelName?: boolean;
}

/** A lock on a folder that ends with its process. */
export interface FolderLock {
  release(): Promise<void>;
}

const HINT =
  "Stop that process, use its HTTP API instead, or set DATABASE_URL to a PostgreSQL server, which any number of " +
  "processes can share.";
const DECIDE_WITHIN_MS = 1_000;

/** The locks of this process. */
const holders = new Map<string, Holder>();

/** Whoever finds this folder held by this process is told where it can be called. */
export function announceAddress(folder: string, url: string): void {
  const self = holders.get(folder);
  if (self) self.url = url;
}

/**
 * Locks a folder for this process, as `open()` does with the embedded database's; FolderLocked says who has it. `folder`
 * is an existing one, with symbolic links resolved (`realpath`).
 */
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
    url: null,
  };
  const held: (() => Promise<void>)[] = [];
  const letGo = async (): Promise<void> => {
    await Promise.all(held.splice(0).map((end) => end()));
    open.delete(folder);
    if (holders.get(folder) === self) holders.delete(folder);
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
    holders.set(folder, self);
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

function locked(folder: string, holder: Holder | "silent"): FolderLocked {
  if (holder === "silent") {
    const message = `The folder ${folder} is in use by a process that does not answer: it is stopped, or very busy.`;
    return new FolderLocked(message, HINT);
  }
  const hint = holder.url === null ? HINT : `It serves HTTP at ${holder.url}. ${HINT}`;
  return new FolderLocked(`The folder ${folder} is in use by ${describeHolder(holder)}.`, hint);
}
