// One line for each spec: its badge, how far it is, why it is tried again, and what can be done with it.
import { element } from "./dom.js";

export function specLine(spec, acts, isOpen) {
  const { name, title, version, format, state, badge, embedded, operations, lastError, problems, isParked } = spec;
  const many = `${operations} ${operations === 1 ? "operation" : "operations"}`;
  const isUnderWay = state === "indexing" || state === "retrying" || state === "queued";
  return element(
    "li",
    { "data-spec": name },
    element(
      "div",
      { class: "row" },
      element("strong", {}, name),
      element("span", { class: `badge ${state}`, ...(lastError !== null && { title: lastError }) }, badge),
      isUnderWay && operations > 0
        ? element("progress", {
            max: operations,
            value: embedded,
            "aria-label": `${embedded} of ${operations} embedded`,
          })
        : null,
      element(
        "span",
        { class: "acts" },
        element(
          "button",
          { type: "button", onclick: () => acts.reembed(name) },
          state === "failed" ? "Retry" : "Re-embed",
        ),
        element("button", { type: "button", onclick: () => acts.rename(name) }, "Rename"),
        element("button", { type: "button", onclick: () => acts.remove(name) }, "Delete"),
      ),
    ),
    element("p", { class: "soft" }, `${[title || "no title", version].join(" ").trim()}, ${format}, ${many}`),
    lastError === null
      ? null
      : element("p", { class: "why" }, `${lastError}${isParked ? " It rests before the next try." : ""}`),
    problems.length === 0
      ? null
      : element(
          "details",
          { open: isOpen },
          element("summary", {}, "The document does not follow its schema"),
          element("ul", {}, ...problems.map((problem) => element("li", {}, problem))),
        ),
  );
}

export function hitLine({ spec, method, path, summary, by, isStale }) {
  return element(
    "li",
    {},
    element("code", {}, element("b", {}, method), ` ${path}`),
    element("p", {}, summary || "(no summary)"),
    element(
      "p",
      { class: "soft" },
      `${spec}, by ${by.join(" and ")}${isStale ? ", changed since it was indexed" : ""}`,
    ),
  );
}
