// How far a file is, on a terminal: one line that is written over, and gone when it is done. Elsewhere nothing.
import { printable } from "./printable.ts";

export interface Progress {
  update(done: number): void;
  end(): void;
}

const WIDTH = 24;
const REDRAW_MS = 100;

export function showProgress(name: string, size: number): Progress {
  const { stderr } = process;
  if (!stderr.isTTY) return { update: () => {}, end: () => {} };
  const began = performance.now();
  let drawnAt = -Infinity;
  let startedWith: number | undefined;
  return {
    update(done) {
      startedWith ??= done;
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS && done < size) return;
      drawnAt = now;
      const part = size === 0 ? 1 : done / size;
      const rate = ((done - startedWith) / 1_048_576 / Math.max(now - began, 1)) * 1_000;
      const bar = drawBar(done, size, WIDTH);
      stderr.write(
        `\r\u001b[K${bar} ${String(Math.floor(part * 100)).padStart(3)} %  ${rate.toFixed(1)} MB/s  ${printable(name)}`,
      );
    },
    end() {
      stderr.write("\r\u001b[K");
    },
  };
}

/** Full only when all is done. */
export function drawBar(done: number, all: number, width: number): string {
  const filled = all === 0 ? width : Math.floor((Math.min(done, all) / all) * width);
  return `[${"#".repeat(filled)}${" ".repeat(width - filled)}]`;
}
