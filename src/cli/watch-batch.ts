// Watches a batch over HTTP until it has ended: a live bar on a terminal, lines elsewhere. A server that is away for a moment
// (a restart) is waited for.
import type { BatchView } from "../http/contracts/batches.ts";
import { formatDuration } from "../shared/duration.ts";
import { sleep } from "../shared/sleep.ts";
import type { BatchesApi } from "./batches-api.ts";
import { EXIT } from "./exit-codes.ts";
import { print } from "./output.ts";
import { Problem } from "./problem.ts";
import { Unanswered } from "./requests.ts";
import { batchLine } from "./show-batch.ts";

export interface WatchOptions {
  /** One JSON object for each change instead of text. */
  asJson: boolean;
  timeoutMs: number;
}

const LOOK_MS = 500;
const SERVER_MAY_BE_AWAY_MS = 30_000;
const WIDTH = 30;

export async function watchBatch(api: BatchesApi, id: string, { asJson, timeoutMs }: WatchOptions): Promise<BatchView> {
  const startedAt = performance.now();
  const show = makeShow(asJson);
  let lastSeenAt = startedAt;
  try {
    for (let pause = 50; ; pause = Math.min(pause * 2, LOOK_MS)) {
      try {
        const batch = await api.read(id);
        lastSeenAt = performance.now();
        show.batch(batch);
        if (batch.finishedAt !== null) return batch;
      } catch (error) {
        const isAway = error instanceof Unanswered || (error instanceof Problem && error.exitCode === EXIT.temporary);
        if (!isAway || performance.now() - lastSeenAt > SERVER_MAY_BE_AWAY_MS) throw error;
      }
      const left = timeoutMs - (performance.now() - startedAt);
      if (left <= 0) {
        throw new Problem(
          `Batch ${id} has not ended after ${formatDuration(timeoutMs)}.`,
          `It goes on. Look at it with \`holdfast batches show ${id}\`.`,
          EXIT.waitTimeout,
        );
      }
      await sleep(Math.min(pause, left));
    }
  } finally {
    show.end();
  }
}

/** What its end means for the exit code: something is left for a person to look at. */
export const endedWell = (batch: BatchView): boolean => batch.state === "done" && (batch.counts["error"] ?? 0) === 0;

function makeShow(asJson: boolean) {
  const { stderr } = process;
  const isBar = stderr.isTTY && process.stdout.isTTY && !asJson;
  let said = "";
  return {
    batch(batch: BatchView): void {
      if (isBar) {
        // No wider than the terminal: a line that wraps could not be written over. Some do not say how wide they are.
        stderr.write(`\r\u001b[K${`${bar(batch)} ${batchLine(batch)}`.slice(0, (stderr.columns || 80) - 1)}`);
        return;
      }
      const { rate: _, etaMs: __, ...facts } = batch;
      const changed = JSON.stringify(facts);
      if (changed === said) return;
      said = changed;
      print(asJson ? JSON.stringify(batch) : batchLine(batch));
    },
    end(): void {
      if (isBar) stderr.write("\n");
    },
  };
}

function bar({ ended, total }: BatchView): string {
  const filled = total === 0 ? WIDTH : Math.floor((ended / total) * WIDTH);
  return `[${"#".repeat(filled)}${" ".repeat(WIDTH - filled)}]`;
}
