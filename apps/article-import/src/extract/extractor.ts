// Reads articles out of pages, in threads of their own. A page that takes too long, needs too much memory or brings its
// thread down costs that thread and nothing else: the process, its other pages and its leases go on.
import { Worker } from "node:worker_threads";
import { PageProblem } from "../problems.ts";

export interface PageBytes {
  bytes: Uint8Array;
  contentType: string;
  url: string;
}

export interface ReadArticle {
  /** False: there is no article; what is given is what little text there is. */
  found: boolean;
  title: string;
  byline: string | null;
  siteName: string | null;
  excerpt: string | null;
  publishedAt: string | null;
  language: string | null;
  charset: string;
  /** Sanitised. */
  html: string;
  text: string;
  words: number;
}

export interface ExtractorOptions {
  threads?: number;
  timeoutMs?: number;
  memoryMb?: number;
}

export interface Extractor {
  read(page: PageBytes, signal?: AbortSignal): Promise<ReadArticle>;
  close(): Promise<void>;
}

interface Asked {
  page: PageBytes;
  resolve(article: ReadArticle): void;
  reject(error: unknown): void;
}

interface Thread {
  worker: Worker;
  busy: Asked | undefined;
  timer: NodeJS.Timeout | undefined;
}

const PROGRAM = new URL("./thread.mjs", import.meta.url);

export function makeExtractor({
  threads: most = 1,
  timeoutMs = 10_000,
  memoryMb = 192,
}: ExtractorOptions = {}): Extractor {
  const threads = new Set<Thread>();
  const waiting: Asked[] = [];
  let isClosed = false;

  function start(): Thread {
    const worker = new Worker(PROGRAM, {
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      // Neither the environment nor the process's own output are its business.
      env: {},
      stdin: false,
      stdout: true,
      stderr: true,
    });
    const thread: Thread = { worker, busy: undefined, timer: undefined };
    worker.unref();
    worker.on("message", ({ article, error }: { article?: ReadArticle; error?: string }) => {
      const { busy } = thread;
      if (!busy) return;
      clear(thread);
      if (article) busy.resolve(article);
      else busy.reject(new PageProblem("unreadable", `The page cannot be read: ${error ?? "no reason was given"}`));
      next();
    });
    worker.on("error", (error) => fail(thread, unreadable(error)));
    worker.on("exit", () =>
      fail(thread, new PageProblem("unreadable", "The page brought down the thread that read it.")),
    );
    threads.add(thread);
    return thread;
  }

  function clear(thread: Thread): void {
    clearTimeout(thread.timer);
    thread.busy = undefined;
  }

  function fail(thread: Thread, problem: Error): void {
    const { busy } = thread;
    clear(thread);
    threads.delete(thread);
    void thread.worker.terminate();
    busy?.reject(problem);
    next();
  }

  function next(): void {
    if (isClosed) return;
    while (waiting.length > 0) {
      const idle = [...threads].find((thread) => !thread.busy) ?? (threads.size < most ? start() : undefined);
      if (!idle) return;
      const one = waiting.shift()!;
      idle.busy = one;
      idle.timer = setTimeout(
        () => fail(idle, new PageProblem("too-slow", `Reading the page took longer than ${timeoutMs / 1_000} s.`)),
        timeoutMs,
      );
      idle.worker.postMessage(one.page);
    }
  }

  return {
    read(page, signal) {
      if (isClosed) return Promise.reject(new Error("The extractor is closed."));
      return new Promise((resolve, reject) => {
        const one: Asked = { page, resolve, reject };
        const giveUp = (): void => {
          const at = waiting.indexOf(one);
          if (at !== -1) waiting.splice(at, 1);
          const thread = [...threads].find(({ busy }) => busy === one);
          const why: unknown = signal?.reason;
          if (thread) fail(thread, why instanceof Error ? why : new Error(String(why)));
          else reject(why instanceof Error ? why : new Error(String(why)));
        };
        if (signal?.aborted) return giveUp();
        signal?.addEventListener("abort", giveUp, { once: true });
        const settled =
          <T>(act: (value: T) => void) =>
          (value: T): void => {
            signal?.removeEventListener("abort", giveUp);
            act(value);
          };
        one.resolve = settled(resolve);
        one.reject = settled(reject);
        waiting.push(one);
        next();
      });
    },
    async close() {
      isClosed = true;
      const closed = new Error("The extractor is closed.");
      for (const one of waiting.splice(0)) one.reject(closed);
      for (const thread of threads) {
        thread.busy?.reject(closed);
        clear(thread);
        await thread.worker.terminate();
      }
    },
  };
}

function unreadable(error: unknown): PageProblem {
  const isMemory = (error as { code?: unknown } | null)?.code === "ERR_WORKER_OUT_OF_MEMORY";
  return isMemory
    ? new PageProblem("too-large", "Reading the page needs more memory than one page may have.")
    : new PageProblem(
        "unreadable",
        `The page cannot be read: ${(error instanceof Error ? error.message : String(error)).slice(0, 300)}`,
      );
}
