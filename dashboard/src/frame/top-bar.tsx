// How live the page is, and what is the same on every screen.
import { heardAt, isPaused, link, missed, togglePause } from "../api/live.ts";
import { now, plural, shortSpan, toggleZone, zone } from "../format.ts";
import { Icon } from "../ui/icon.tsx";
import { signIn, token } from "../api/call.ts";
import { isHelpOpen } from "./help.tsx";
import { me } from "./me.ts";
import { isPaletteOpen } from "./palette.tsx";
import { choose, chosen, type Theme, THEMES } from "./theme.ts";

const NAMES: Record<Theme, string> = {
  system: "As the system",
  light: "Light",
  dark: "Dark",
  contrast: "High contrast",
};

export function TopBar() {
  const { name, role, environment, tier } = me.value ?? { name: "", role: "", environment: null, tier: "" };
  return (
    <header class="top">
      <button type="button" class="button find" onClick={() => (isPaletteOpen.value = true)}>
        <Icon name="search" />
        <span class="find-words">Find or do …</span>
        <kbd>{/Mac|iP/.test(navigator.platform) ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      {me.value && (
        <span
          class={`chip${/^prod/i.test(environment ?? "") ? " chip-bad" : ""}${environment === null ? " top-wide" : ""}`}
          title="Which installation this is"
        >
          {environment ?? tier}
        </span>
      )}
      <span class="grow" />
      <Live />
      <button
        type="button"
        class="button button-bare top-wide"
        onClick={toggleZone}
        title="Show times in the other zone"
      >
        {zone.value === "UTC" ? "UTC" : "Local time"}
      </button>
      <label class="top-wide">
        <span class="sr-only">Colours</span>
        <select
          class="select-bare"
          value={chosen.value}
          onChange={(event) => choose(event.currentTarget.value as Theme)}
        >
          {THEMES.map((each) => (
            <option key={each} value={each}>
              {NAMES[each]}
            </option>
          ))}
        </select>
      </label>
      {me.value && (
        <span class="chip top-wide" title={`Signed in as ${name}`}>
          {role}
        </span>
      )}
      {token.value !== null && (
        <button type="button" class="button button-bare top-wide" onClick={() => signIn(null)}>
          Sign out
        </button>
      )}
      <button
        type="button"
        class="button button-bare"
        aria-label="Keys and help"
        onClick={() => (isHelpOpen.value = true)}
      >
        ?
      </button>
    </header>
  );
}

function Live() {
  const silent = now.value - heardAt.value;
  const words = isPaused.value
    ? missed.value > 0
      ? `Paused · ${plural(missed.value, "change")} waiting`
      : "Paused"
    : link.value === "live"
      ? "Live"
      : link.value === "connecting"
        ? "Connecting …"
        : `Away for ${shortSpan(silent)} · trying again`;
  return (
    <button
      type="button"
      class={`button live live-${isPaused.value ? "paused" : link.value}`}
      aria-pressed={isPaused.value}
      title={isPaused.value ? "Go on (p)" : "Pause (p)"}
      onClick={togglePause}
    >
      <span class="live-dot" aria-hidden="true" />
      <span>{words}</span>
      <Icon name={isPaused.value ? "play" : "pause"} />
      <span class="sr-only">{isPaused.value ? "Go on" : "Pause"}</span>
    </button>
  );
}
