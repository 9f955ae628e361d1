// Watches an action on many jobs until it has ended: one line that is written over on a terminal, a line for each change
// elsewhere.
import type { ActionView } from "../http/contracts/actions.ts";
import { formatDuration } from "../shared/duration.ts";
import type { Api } from "./api.ts";
import { EXIT } from "./exit-codes.ts";
import { keepLooking } from "./keep-looking.ts";
import { note } from "./output.ts";
import { Problem } from "./problem.ts";
import { drawBar } from "./progress.ts";

const WIDTH = 30;

export async function watchAction(api: Api, id: string, timeoutMs: number): Promise<ActionView> {
  const { stderr } = process;
  let said = "";
  const show = (action: ActionView): void => {
    const line = actionLine(action);
    if (line === said) return;
    said = line;
    if (!stderr.isTTY) return note(line);
    const bar = drawBar(action.done + action.skipped, action.expected ?? 0, WIDTH);
    stderr.write(`\r\u001b[K${`${bar} ${line}`.slice(0, (stderr.columns || 80) - 1)}`);
  };
  try {
    return await keepLooking({
      async look() {
        const action = await api.readAction(id);
        show(action);
        return action;
      },
      isOver: ({ state }) => state !== "running",
      timeoutMs,
      tooLate: () =>
        new Problem(
          `Action ${id} has not ended after ${formatDuration(timeoutMs)}.`,
          `It goes on. Look at it with \`holdfast actions show ${id}\`.`,
          EXIT.waitTimeout,
        ),
      mostPauseMs: 500,
    });
  } finally {
    if (stderr.isTTY) stderr.write("\n");
  }
}

export function actionLine({ state, done, skipped, expected, error }: ActionView): string {
  const of = expected === null ? "" : ` of ${expected}`;
  const moved = skipped > 0 ? `, ${skipped} had moved on` : "";
  return `${state}: ${done}${of} done${moved}${error === null ? "" : `: ${error}`}`;
}
