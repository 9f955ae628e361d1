// The sample workspace of `holdfast dev`: the real program that polls, in this process, to be started and stopped from the
// page. In the mood "stuck" it polls and never fetches, so that a newcomer sees what a sender sees then.
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Holdfast, Logger } from "holdfast";
import { makeWorkspaceApi } from "./workspace/api.ts";
import type { ReceivedMessage } from "./workspace/journal.ts";
import { pullWorkspace } from "./workspace/pull.ts";
import { addWorkspace, listWorkspaces } from "./workspaces.ts";

export type Mood = "running" | "stopped" | "stuck";

export interface Sample {
  readonly id: string;
  readonly mood: Mood;
  be(mood: Mood): Promise<void>;
}

const NAME = "Sample laptop";

export async function openSample(hf: Holdfast, url: string, log: Logger): Promise<Sample> {
  const known = (await listWorkspaces(hf)).find(({ name }) => name === NAME);
  const { id } =
    known ?? (await addWorkspace(hf, { name: NAME, mode: "poll", callbackUrl: null, callbackToken: null }));
  const into = join(tmpdir(), `holdfast-sample-workspace-${id}`);
  let mood: Mood = "stopped";
  let stopping = new AbortController();
  let over: Promise<unknown> = Promise.resolve();
  let changing: Promise<unknown> = Promise.resolve();
  const onTrouble = (error: unknown): void => log.warn("The sample workspace has trouble", { error: String(error) });

  async function change(next: Mood): Promise<void> {
    if (next === mood) return;
    stopping.abort();
    await over;
    stopping = new AbortController();
    const { signal } = stopping;
    // One that ended by itself can be started again.
    const isOver = (): void => void (signal.aborted || (mood = "stopped"));
    if (next === "running") over = run(signal).catch(onTrouble).then(isOver);
    else if (next === "stuck") over = pollOnly(signal).catch(onTrouble).then(isOver);
    mood = next;
  }

  /** A token for this life of it; the last one's ends. */
  async function newToken(): Promise<string> {
    const mine = (await hf.tokens.list()).filter((token) => token.recipient === id);
    for (const token of mine) await hf.tokens.revoke(token.id).catch(() => {});
    return (await hf.tokens.create({ name: "sample workspace", role: "operator", recipient: id, expires: "7d" })).token;
  }

  async function run(signal: AbortSignal): Promise<void> {
    const token = await newToken();
    const api = makeWorkspaceApi(url, token, id);
    await pullWorkspace({
      url,
      token,
      workspace: id,
      into,
      signal,
      onTrouble,
      onMessage: (message) => api.say(answerTo(message), answerId(id, message.seq), signal),
    });
  }

  async function pollOnly(signal: AbortSignal): Promise<void> {
    const api = makeWorkspaceApi(url, await newToken(), id);
    const isOver = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    while (!signal.aborted) {
      await api.inbox(0, "0s", signal).catch(onTrouble);
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([isOver, new Promise((resolve) => (timer = setTimeout(resolve, 2_000)))]);
      clearTimeout(timer);
    }
  }

  return {
    id,
    get mood() {
      return mood;
    },
    be(next) {
      const changed = changing.then(() => change(next));
      changing = changed.catch(() => {});
      return changed;
    },
  };
}

function answerTo({ files }: ReceivedMessage): string {
  if (files.length === 0) return "Read.";
  const lines = files.map(({ name, uri, size, isHere }) =>
    isHere ? `${name}: ${size} bytes, verified, at ${uri}` : `${name}: was gone before I came.`,
  );
  return lines.join("\n");
}

/** One answer to one message, however often it is given. */
function answerId(workspaceId: string, seq: number): string {
  const hex = createHash("sha256").update(`${workspaceId} ${seq}`).digest("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5");
}
