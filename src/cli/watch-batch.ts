// Watches a batch over HTTP until it has ended: a live bar on a terminal, lines elsewhere.
import type { BatchView } from "../http/contracts/batches.ts";
import { formatDuration } from "../shared/duration.ts";
import type { BatchesApi } from "./batches-api.ts";
import { EXIT } from "./exit-codes.ts";
import { drawBar } from "./progress.ts";
import { keepLooking } from "./keep-looking.ts";
import { print } from "./output.ts";
import { Problem } from "./problem.ts";
import { batchLine } from "./show-batch.ts";

export interface WatchOptions {
  /** One JSON object for each change instead of text. */
  asJson: boolean;
  timeoutMs: number;
}

const LOOK_MS = 500;
const WIDTH = 30;

export async function watchBatch(api: BatchesApi, id: string, { asJson, timeoutMs }: WatchOptions): Promise<BatchView> {
  const show = makeShow(asJson);
  try {
    return await keepLooking({
      async look() {
        const batch = await api.read(id);
        show.batch(batch);
        return batch;
      },
      isOver: ({ finishedAt }) => finishedAt !== null,
      timeoutMs,
      tooLate: () =>
        new Problem(
          `Batch ${id} has not ended after ${formatDuration(timeoutMs)}.`,
          `It goes on. Look at it with \`holdfast batches show ${id}\`.`,
          EXIT.waitTimeout,
        ),
      mostPauseMs: LOOK_MS,
    });
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
        stderr.write(
          `\r\u001b[K${`${drawBar(batch.ended, batch.total, WIDTH)} ${batchLine(batch)}`.slice(0, (stderr.columns || 80) - 1)}`,
        );
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
