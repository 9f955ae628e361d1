// One verb on many jobs: asks first, says how many, takes a rate, and starts an action in the background.
import { useState } from "preact/hooks";
import { call } from "../api/call.ts";
import { useData } from "../api/use-data.ts";
import { exact } from "../format.ts";
import { attempt } from "../frame/toasts.tsx";
import { Confirm } from "../ui/dialog.tsx";

export type Verb = "retry" | "discard" | "cancel";

const ABOUT: Record<Verb, { states: string; what: string; yes: string }> = {
  retry: { states: "dead", what: "Dead ones among them run again, each with all its attempts.", yes: "Retry" },
  discard: {
    states: "dead",
    what: "Dead ones among them are put away: they leave this list and stay readable for a while.",
    yes: "Discard",
  },
  cancel: {
    states: "pending,running",
    what: "Those that wait end now; those that run are asked to end.",
    yes: "Cancel them",
  },
};

export interface ActProps {
  verb: Verb;
  filter: Record<string, unknown>;
  /** How many, if that is known. */
  count?: number | undefined;
  /** To count them, otherwise. */
  query?: Record<string, string | undefined> | undefined;
  what: string;
  /** Instead of the verb: "Redrive". */
  word?: string;
  perMinute?: number;
  onClose(): void;
  onDone(): void;
}

export function ActDialog({ verb, filter, count, query, what, word, perMinute, onClose, onDone }: ActProps) {
  const [rate, setRate] = useState(perMinute === undefined ? "" : String(perMinute));
  const [isBusy, busy] = useState(false);
  const about = ABOUT[verb];
  const counted = useData(`act ${verb} ${JSON.stringify(query ?? null)}`, async (signal) =>
    query === undefined ? null : await call("countJobs", { signal, query: { ...query, state: about.states } }),
  ).value;
  const many = count ?? counted?.count;
  const yes = word ?? about.yes;
  const start = async () => {
    busy(true);
    const perMinuteAsked = Number(rate);
    const isOk = await attempt(async () => {
      const action = await call("startAction", {
        body: { verb, filter, ...(perMinuteAsked > 0 ? { perMinute: Math.round(perMinuteAsked) } : {}) },
      });
      return { text: `Started: ${action.title}`, to: "#/actions" };
    });
    busy(false);
    if (isOk) onDone();
  };
  return (
    <Confirm
      question={{
        title: `${yes} ${what}?`,
        text: about.what,
        yes: isBusy ? "…" : many === undefined ? yes : `${yes} ${exact(many)}${counted?.more ? "+" : ""}`,
        isDangerous: verb !== "retry",
      }}
      onYes={() => void start()}
      onClose={onClose}
    >
      <label class="field">
        <span>At most so many a minute (empty: as fast as it goes)</span>
        <input
          class="input input-short"
          type="number"
          min="1"
          max="1000000"
          inputMode="numeric"
          value={rate}
          onInput={(event) => setRate(event.currentTarget.value)}
        />
      </label>
      <p class="quiet">
        It goes on in the background and is written to the audit log. Jobs enqueued from now on are left alone.
      </p>
    </Confirm>
  );
}
