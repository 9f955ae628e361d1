// One line for each spec: its badge, how far it is, why it is tried again, and what can be done with it.
import { make } from "/apps/page.js";

export function specLine(spec, acts, isOpen) {
  const { name, title, version, format, state, badge, embedded, operations, lastError, problems, isParked } = spec;
  const many = `${operations} ${operations === 1 ? "operation" : "operations"}`;
  const isUnderWay = state === "indexing" || state === "retrying" || state === "queued";
  return make(
    "li",
    { "data-spec": name },
    make(
      "div",
      { class: "row" },
      make("strong", {}, name),
      make("span", { class: `badge ${state}`, ...(lastError !== null && { title: lastError }) }, badge),
      isUnderWay && operations > 0
        ? make("progress", {
            max: operations,
            value: embedded,
            "aria-label": `${embedded} of ${operations} embedded`,
          })
        : null,
      make(
        "span",
        { class: "acts" },
        make(
          "button",
          { type: "button", onclick: () => acts.reembed(name) },
          state === "failed" ? "Retry" : "Re-embed",
        ),
        make("button", { type: "button", onclick: () => acts.rename(name) }, "Rename"),
        make("button", { type: "button", onclick: () => acts.remove(name) }, "Delete"),
      ),
    ),
    make("p", { class: "soft" }, `${[title || "no title", version].join(" ").trim()}, ${format}, ${many}`),
    lastError === null
      ? null
      : make("p", { class: "why" }, `${lastError}${isParked ? " It rests before the next try." : ""}`),
    problems.length === 0
      ? null
      : make(
          "details",
          { open: isOpen },
          make("summary", {}, "The document does not follow its schema"),
          make("ul", {}, ...problems.map((problem) => make("li", {}, problem))),
        ),
  );
}

export function hitLine({ spec, method, path, summary, by, isStale }) {
  return make(
    "li",
    {},
    make("code", {}, make("b", {}, method), ` ${path}`),
    make("p", {}, summary || "(no summary)"),
    make("p", { class: "soft" }, `${spec}, by ${by.join(" and ")}${isStale ? ", changed since it was indexed" : ""}`),
  );
}
