// Keys that work everywhere, but not while somebody writes.
import { togglePause } from "../api/live.ts";
import { go } from "../router.ts";
import { SCREENS } from "../screens.ts";
import { areKeysOn, isHelpOpen } from "./help.tsx";
import { isPaletteOpen } from "./palette.tsx";
import { nextTheme } from "./theme.ts";

let isGoing = false;

export function startKeys(): () => void {
  const heard = (event: KeyboardEvent): void => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      isPaletteOpen.value = !isPaletteOpen.value;
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || !areKeysOn.value || isWriting(event.target)) return;
    if (isGoing) {
      isGoing = false;
      const screen = SCREENS.find(({ key }) => key === event.key);
      if (screen) go(`#/${screen.path}`);
      return;
    }
    const run = KEYS[event.key];
    if (run) {
      event.preventDefault();
      run(event);
    }
  };
  document.addEventListener("keydown", heard);
  return () => document.removeEventListener("keydown", heard);
}

const KEYS: Record<string, (event: KeyboardEvent) => void> = {
  g: () => {
    isGoing = true;
    setTimeout(() => (isGoing = false), 1_500);
  },
  "/": () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus(),
  "?": () => (isHelpOpen.value = true),
  p: togglePause,
  t: nextTheme,
  j: () => step(1),
  k: () => step(-1),
  x: () => rowCheck()?.click(),
  X: () => {
    const box = rowCheck();
    box?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: true }));
  },
};

const rowLinks = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("main [data-row]")];
const rowCheck = (): HTMLInputElement | null =>
  document.activeElement?.closest("tr")?.querySelector<HTMLInputElement>("input[type=checkbox]") ?? null;

function step(by: number): void {
  const links = rowLinks();
  const row = document.activeElement?.closest("tr");
  const at = links.findIndex((link) => link.closest("tr") === row && row !== null);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}

function isWriting(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement && target.type === "checkbox") return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
