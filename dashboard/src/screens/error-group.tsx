// Jobs whose errors have something in common: what they failed with, and one verb on all of them that are dead.
import type { ComponentChildren } from "preact";
import { firstLine } from "../format.ts";
import { href } from "../router.ts";
import { ActDialog, type Verb } from "./act.tsx";

export interface ErrorGroup {
  kind: string;
  queue: string;
  fingerprint: string;
  name: string | null;
  message: string | null;
  lastJobId: string;
}

export const keyOfGroup = ({ kind, fingerprint }: ErrorGroup): string => `${kind} ${fingerprint}`;
export const deadOf = ({ kind, fingerprint }: ErrorGroup): string =>
  href(["jobs"], { q: `status:dead kind:${kind} fingerprint:${fingerprint}` });

/** The cause, which leads to the newest job of it; and where it happens. */
export function GroupName({ group, children }: { group: ErrorGroup; children: ComponentChildren }) {
  return (
    <div class="job-name">
      <a href={href(["jobs", group.lastJobId])} data-row>
        <strong>{group.name ?? "Unknown"}</strong> {firstLine(group.message ?? "").slice(0, 200)}
      </a>
      <span class="quiet">
        {group.kind} · <a href={href(["queues", group.queue])}>{group.queue}</a> · {children}
      </span>
    </div>
  );
}

export function GroupButton(props: { group: ErrorGroup; word: string; isMain?: boolean; onClick(): void }) {
  const { group, word, isMain = false, onClick } = props;
  return (
    <button type="button" class={`button button-small${isMain ? " button-main" : ""}`} onClick={onClick}>
      {word}
      <span class="sr-only">
        {" "}
        {group.kind}: {group.name}
      </span>
    </button>
  );
}

export interface GroupDialogProps {
  group: ErrorGroup;
  verb: Extract<Verb, "retry" | "discard">;
  onClose(): void;
  onDone(): void;
}

export function GroupDialog({ group: { kind, fingerprint, name }, verb, onClose, onDone }: GroupDialogProps) {
  const isRetry = verb === "retry";
  return (
    <ActDialog
      verb={verb}
      word={isRetry ? "Redrive" : "Discard"}
      filter={{ status: ["dead"], kind, fingerprint }}
      query={{ status: "dead", kind, fingerprint }}
      what={`dead ${kind} with ${name ?? "this error"}`}
      {...(isRetry ? { perMinute: 600 } : {})}
      onClose={onClose}
      onDone={onDone}
    />
  );
}
