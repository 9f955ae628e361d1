// The states that a job can go through, with the way that this one took. Said in a sentence as well.
import type { Output } from "../api/call.ts";
import { exact, plural } from "../format.ts";

type Job = Output<"readJob">;
type Node = "scheduled" | "ready" | "running" | "retrying" | "done" | "dead" | "cancelled";
type Edge = readonly [from: Node | "start", to: Node];

interface Layout {
  box: readonly [width: number, height: number];
  half: number;
  at: Readonly<Record<Node | "start", readonly [x: number, y: number]>>;
  /** By "from to". */
  lines: Readonly<Record<string, string>>;
}

const WIDE: Layout = {
  box: [560, 186],
  half: 48,
  at: {
    start: [14, 88],
    scheduled: [112, 28],
    ready: [196, 88],
    running: [346, 88],
    retrying: [271, 150],
    done: [504, 28],
    dead: [504, 88],
    cancelled: [504, 150],
  },
  lines: {
    "start ready": "M21 88H142",
    "start scheduled": "M19 83L58 34",
    "scheduled ready": "M140 47L164 64",
    "ready running": "M244 88H292",
    "running retrying": "M330 107L308 126",
    "retrying ready": "M244 131L221 112",
    "running done": "M394 78L450 36",
    "running dead": "M394 88H450",
    "running cancelled": "M394 98L450 142",
    "ready cancelled": "M196 107C196 190 400 190 452 164",
    "scheduled cancelled": "M112 47C112 200 380 200 452 166",
  },
};

const NARROW: Layout = {
  box: [280, 318],
  half: 43,
  at: {
    start: [70, 12],
    scheduled: [220, 46],
    ready: [70, 102],
    running: [70, 202],
    retrying: [220, 152],
    done: [47, 292],
    dead: [140, 292],
    cancelled: [233, 292],
  },
  lines: {
    "start ready": "M70 19V78",
    "start scheduled": "M77 14L172 40",
    "scheduled ready": "M190 65L118 92",
    "ready running": "M70 121V178",
    "running retrying": "M113 190L172 166",
    "retrying ready": "M177 140L118 116",
    "running done": "M64 221L53 268",
    "running dead": "M88 221L126 268",
    "running cancelled": "M113 216L208 268",
    "ready cancelled": "M113 100C290 100 272 200 238 268",
    "scheduled cancelled": "M263 50C290 120 284 220 246 268",
  },
};

/** How often it was in each state, as far as is known; and which way it went. */
function wayOf(job: Job): { been: ReadonlyMap<Node, number>; went: ReadonlySet<string>; now: Node } {
  const { status, claimCount, attempts } = job;
  const now: Node = status === "stuck" ? "running" : status === "paused" ? "ready" : status;
  const been = new Map<Node, number>();
  const went = new Set<string>();
  const go = (...[from, to]: Edge): void => void went.add(`${from} ${to}`);
  const retried = attempts.filter(({ outcome }) => outcome === "retry").length;
  // Later, its due time is that of a retry.
  const waited = retried === 0 && Date.parse(job.runAt) - Date.parse(job.createdAt) > 1_000;
  const wasDue = now !== "scheduled" && (claimCount > 0 || job.finishedAt === null || job.finishedAt >= job.runAt);
  if (now === "scheduled" || waited) {
    been.set("scheduled", 1);
    go("start", "scheduled");
    if (wasDue) go("scheduled", "ready");
  } else go("start", "ready");
  if (wasDue) been.set("ready", 1);
  if (claimCount > 0) {
    been.set("running", claimCount);
    go("ready", "running");
  }
  if (retried > 0 || now === "retrying") {
    been.set("retrying", Math.max(1, retried));
    go("running", "retrying");
    if (claimCount > 1) go("retrying", "ready");
  }
  if (now === "done" || now === "dead" || now === "cancelled") {
    been.set(now, 1);
    go(claimCount > 0 ? "running" : wasDue ? "ready" : "scheduled", now);
  }
  return { been, went, now };
}

function sentence(job: Job, been: ReadonlyMap<Node, number>, now: Node): string {
  const parts = ["enqueued"];
  if (been.has("scheduled") && now !== "scheduled") parts.push("scheduled");
  if (been.has("running")) parts.push(`ran ${plural(been.get("running")!, "time")}`);
  if (been.has("retrying")) parts.push(`tried again ${plural(been.get("retrying")!, "time")}`);
  return `${parts.join(", ")}; now ${job.status}.`.replace(/^./, (first) => first.toUpperCase());
}

const NODES: readonly Node[] = ["scheduled", "ready", "running", "retrying", "done", "dead", "cancelled"];

export function Diagram({ job }: { job: Job }) {
  const { been, went, now } = wayOf(job);
  const words = sentence(job, been, now);
  return (
    <div class="diagram">
      {([WIDE, NARROW] as const).map(({ box, half, at, lines }) => (
        <svg
          key={box[0]}
          class={box[0] === WIDE.box[0] ? "diagram-wide" : "diagram-narrow"}
          viewBox={`0 0 ${box[0]} ${box[1]}`}
          aria-hidden="true"
          focusable="false"
        >
          <defs>
            {["off", "on"].map((look) => (
              <marker
                key={look}
                id={`arrow-${look}-${box[0]}`}
                class={`arrow-${look}`}
                viewBox="0 0 8 8"
                refX="6"
                refY="4"
                markerWidth="7"
                markerHeight="7"
                orient="auto"
              >
                <path d="M0 0L8 4L0 8z" />
              </marker>
            ))}
          </defs>
          <circle class="diagram-start" cx={at.start[0]} cy={at.start[1]} r="6" />
          {Object.entries(lines).map(([edge, line]) => {
            const look = went.has(edge) ? "on" : "off";
            // The ways past a run are rare: they are drawn for those that took them.
            if (/^(ready|scheduled) cancelled$/.test(edge) && look === "off") return null;
            return (
              <path key={edge} class={`edge edge-${look}`} d={line} marker-end={`url(#arrow-${look}-${box[0]})`} />
            );
          })}
          {NODES.map((node) => {
            const [x, y] = at[node];
            const times = been.get(node) ?? 0;
            const look = node === now ? "now" : times > 0 ? "been" : "not";
            const label = node === now ? job.status : node;
            return (
              <g key={node} class={`node node-${look} node-${node}`}>
                <rect x={x - half} y={y - 19} width={2 * half} height="38" rx="8" />
                <text x={x} y={times > 1 || node === now ? y - 1 : y + 4}>
                  {label}
                </text>
                {(times > 1 || node === now) && (
                  <text class="node-times" x={x} y={y + 13}>
                    {[times > 1 ? `${exact(times)} times` : "", node === now ? "now" : ""].filter(Boolean).join(", ")}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
      ))}
      <p class="quiet diagram-words">{words}</p>
    </div>
  );
}
