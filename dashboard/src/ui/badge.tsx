// How a job stands, in words, with a drawing and a colour. What is behind it (the last error, which attempt, when the next
// one is) opens on hover, focus and tap, stays while the pointer is on it, and closes with Escape.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { JobSummary } from "#src/http/contracts/jobs.js";
import { type BadgeJob, wordsOf } from "../badge-words.ts";
import { firstLine, now, span, time } from "../format.ts";
import { Icon, type IconName } from "./icon.tsx";

export type Status = JobSummary["status"];

const ICONS: Record<Status, IconName> = {
  scheduled: "clock",
  ready: "ready",
  running: "play",
  retrying: "retry",
  stuck: "stuck",
  paused: "pause",
  done: "done",
  dead: "dead",
  cancelled: "cancelled",
};

/** Lines for the bubble. */
function behind(job: BadgeJob, at: number): string[] {
  const lines: string[] = [];
  if (job.lastError && job.status !== "done") {
    lines.push(`${job.lastError.name}: ${firstLine(job.lastError.message).slice(0, 300)}`);
  }
  if (job.status === "stuck" && job.leaseExpiresAt) {
    lines.push(
      `Its lease ran out ${span(at - Date.parse(job.leaseExpiresAt))} ago: its worker died or cannot reach the database.`,
    );
  }
  if (job.status === "paused") lines.push("Its queue is paused.");
  if (job.attempt > 0 || lines.length > 0) lines.push(`Attempt ${job.attempt} of ${job.maxAttempts}.`);
  if (job.status === "retrying") {
    const inMs = Date.parse(job.runAt) - at;
    lines.push(
      inMs > 0 ? `Next try in ${span(inMs)}, at ${time(job.runAt, false)}.` : "Next try as soon as a worker is free.",
    );
  }
  if (job.status === "scheduled") lines.push(`Due at ${time(job.runAt)}.`);
  return lines;
}

export function Badge({ job }: { job: BadgeJob }) {
  const words = wordsOf(job, now.value);
  const lines = behind(job, now.value);
  const again = job.status === "done" && job.attempt > 1 ? " badge-again" : "";
  const look = `badge badge-${job.status}${again}`;
  const inside = (
    <>
      <Icon name={ICONS[job.status]} />
      {words}
    </>
  );
  if (lines.length === 0) return <span class={look}>{inside}</span>;
  return (
    <Bubble look={look} lines={lines}>
      {inside}
    </Bubble>
  );
}

function Bubble({ look, lines, children }: { look: string; lines: string[]; children: preact.ComponentChildren }) {
  const id = useId();
  const [isOpen, open] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const bubble = useRef<HTMLSpanElement>(null);
  const closing = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const stay = () => {
    clearTimeout(closing.current);
    open(true);
  };
  const leave = () => {
    // Long enough to move the pointer onto it.
    closing.current = setTimeout(() => open(false), 150);
  };
  useEffect(() => () => clearTimeout(closing.current), []);
  useEffect(() => {
    if (!isOpen || !button.current || !bubble.current) return;
    const at = button.current.getBoundingClientRect();
    const { style, offsetWidth, offsetHeight } = bubble.current;
    const isBelow = at.bottom + offsetHeight + 8 < innerHeight;
    style.left = `${Math.max(8, Math.min(at.left, innerWidth - offsetWidth - 8))}px`;
    style.top = `${isBelow ? at.bottom + 4 : at.top - offsetHeight - 4}px`;
    const close = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      open(false);
    };
    const scrolled = () => open(false);
    document.addEventListener("keydown", close, true);
    document.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => {
      document.removeEventListener("keydown", close, true);
      document.removeEventListener("scroll", scrolled, true);
    };
  }, [isOpen]);
  return (
    <span class="bubble-place" onMouseEnter={stay} onMouseLeave={leave}>
      <button
        ref={button}
        type="button"
        class={look}
        aria-describedby={id}
        onFocus={stay}
        onBlur={leave}
        onClick={(event) => {
          event.preventDefault();
          event.stopPropagation();
          stay();
        }}
      >
        {children}
      </button>
      <span ref={bubble} id={id} role="tooltip" class={`bubble${isOpen ? " bubble-open" : ""}`}>
        {lines.map((line) => (
          <span key={line}>{line} </span>
        ))}
      </span>
    </span>
  );
}
