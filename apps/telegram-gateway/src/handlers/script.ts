// Handler `script`: a program with the update on its input and the answer on its output. No shell; nothing of this
// process's environment but what it needs to run; its whole process group ends with it, with its time, its output limit or
// the job.
import { spawn } from "node:child_process";
import type { Answer, Bot, HandlerContext } from "../config/bot.ts";
import type { Update } from "../update.ts";

const MAX_COMPLAINT = 4_096;
/** For output of a program that has ended and whose pipes somebody still holds: what it wrote is in them already. */
const DRAIN_MS = 200;
/** Of the environment of this process; the rest may hold tokens. */
const PASSED_ON = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"];

export function callScript(
  { slug, script }: Bot,
  update: Update,
  { attempt, signal }: HandlerContext,
): Promise<Answer> {
  const { command, timeoutMs, maxOutput, env, cwd } = script!;
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(reasonOf(signal));
    const child = spawn(program, args, {
      cwd,
      shell: false,
      stdio: "pipe",
      // A group of its own: what the program started ends with it.
      detached: process.platform !== "win32",
      env: {
        ...passedOn(),
        ...env,
        TELEGRAM_BOT: slug,
        TELEGRAM_UPDATE_ID: String(update.update_id),
        TELEGRAM_ATTEMPT: String(attempt),
      },
    });
    const said: Buffer[] = [];
    let size = 0;
    let complaint = "";
    let broken: Error | undefined;
    let drain: NodeJS.Timeout | undefined;
    const stop = (error: Error): void => {
      broken ??= error;
      endGroup(child.pid);
      // A grandchild that left the group may hold the pipes: nobody listens to it any more.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const timer = setTimeout(() => stop(new Error(`${program} took longer than ${timeoutMs} ms`)), timeoutMs);
    const onAbort = (): void => stop(reasonOf(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    child.stdout.on("data", (piece: Buffer) => {
      size += piece.length;
      if (size > maxOutput) stop(new Error(`${program} wrote more than ${maxOutput} bytes`));
      else said.push(piece);
    });
    child.stderr.on("data", (piece: Buffer) => {
      complaint = (complaint + piece.toString("utf8")).slice(-MAX_COMPLAINT);
    });
    // A program that does not want to read its input is no fault.
    child.stdin.on("error", () => {});
    child.on("error", (error) => {
      broken ??= new Error(`${program} cannot be started: ${error.message}`);
      finish(null, null);
    });
    child.on("exit", (code, ended) => {
      // Whatever it left running in the background.
      endGroup(child.pid);
      drain = setTimeout(() => {
        // After what is there to read was read, however late this process is.
        setImmediate(() => {
          finish(code, ended);
          child.stdout.destroy();
          child.stderr.destroy();
        });
      }, DRAIN_MS);
    });
    child.on("close", finish);
    child.stdin.end(JSON.stringify(update));

    function finish(code: number | null, ended: NodeJS.Signals | null): void {
      clearTimeout(timer);
      clearTimeout(drain);
      signal.removeEventListener("abort", onAbort);
      if (broken) return reject(broken);
      if (code !== 0) {
        const how = code === null ? `was ended by ${ended}` : `ended with ${code}`;
        return reject(new Error(`${program} ${how}${complaint.trim() === "" ? "" : `: ${complaint.trim()}`}`));
      }
      const text = Buffer.concat(said).toString("utf8").trim();
      resolve(text === "" ? {} : { text });
    }
  });
}

function passedOn(): Record<string, string> {
  const kept = PASSED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === "win32" ? pid : -pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("aborted");
}
