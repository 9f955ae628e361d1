// Light, dark, high contrast; by default as the system says.
import { computed, effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark", "contrast"] as const;
export type Theme = (typeof THEMES)[number];

const STORE = "holdfast-theme";
const stored = localStorage.getItem(STORE);
export const chosen = signal<Theme>(THEMES.find((known) => known === stored) ?? "system");

const dark = matchMedia("(prefers-color-scheme: dark)");
const contrast = matchMedia("(prefers-contrast: more)");
const system = signal(read());
function read(): "light" | "dark" | "contrast" {
  return contrast.matches ? "contrast" : dark.matches ? "dark" : "light";
}
for (const query of [dark, contrast]) query.addEventListener("change", () => (system.value = read()));

export const theme = computed(() => (chosen.value === "system" ? system.value : chosen.value));

export function choose(next: Theme): void {
  chosen.value = next;
  localStorage.setItem(STORE, next);
}

export function nextTheme(): void {
  choose(THEMES[(THEMES.indexOf(chosen.value) + 1) % THEMES.length]!);
}

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});
