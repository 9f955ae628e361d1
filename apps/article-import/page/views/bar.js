// The segmented bar of an import: one piece for each thing that links came to. What it shows is also said in words.
import { make } from "/apps/page.js";
import { t } from "../words.js";

export const ORDER = ["saved", "consent-wall", "duplicate", "error", "cancelled", "handed-over", "running", "pending"];

export function bar({ counts, ended, total }) {
  const parts = ORDER.filter((state) => counts[state] > 0);
  const label = [
    t("progress", { ended, total }),
    ...parts.map((state) => `${counts[state]} ${t(`counters.${state}`)}`),
  ].join(", ");
  const box = make(
    "div",
    { class: "bar", role: "img", "aria-label": label },
    parts.map((state) => make("span", { class: `part ${state}` })),
  );
  // Set by hand: the page's policy allows no style attributes.
  parts.forEach((state, at) => box.children[at].style.setProperty("flex-grow", String(counts[state])));
  return box;
}

export function counters({ counts }) {
  const parts = ORDER.filter((state) => counts[state] > 0);
  return make(
    "ul",
    { class: "counters" },
    parts.map((state) =>
      make(
        "li",
        {},
        make("span", { class: `dot ${state}`, "aria-hidden": "true" }),
        make("strong", { "data-count": state }, String(counts[state])),
        ` ${t(`counters.${state}`)}`,
      ),
    ),
  );
}
