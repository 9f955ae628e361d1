// All imports, newest first.
import { fill, make } from "/apps/page.js";
import { call } from "../api.js";
import { fillList } from "../dom.js";
import { makeTurns } from "../turns.js";
import { dateText, nameOf, t } from "../words.js";
import { bar, counters } from "./bar.js";

const FILTERS = ["all", "active", "done", "errors"];

export function listView(main, { place }) {
  const filter = FILTERS.includes(place[1]) ? place[1] : "all";
  const list = make("ul", { class: "cards" });
  const empty = make("p", { class: "soft" });
  const more = make("button", { hidden: true, onclick: () => void showMore() }, t("more"));
  const turn = makeTurns();
  let pages = 1;
  main.replaceChildren(
    make("h1", { tabindex: "-1" }, t("imports")),
    make(
      "nav",
      { class: "filters", "aria-label": t("filterLabel") },
      FILTERS.map((name) =>
        make(
          "a",
          { href: name === "all" ? "#/" : `#/list/${name}`, "aria-current": name === filter ? "page" : null },
          t(`filters.${name}`),
        ),
      ),
    ),
    list,
    empty,
    more,
  );

  async function showMore() {
    pages += 1;
    await refresh();
  }

  async function refresh() {
    const isNews = turn();
    let imports = [];
    let next = null;
    for (let page = 0; page < pages; page += 1) {
      const query = new URLSearchParams({ filter, ...(next ? { cursor: next } : {}) });
      const answer = await call("GET", `/imports?${query}`);
      imports = [...imports, ...answer.imports];
      next = answer.next;
      if (next === null) break;
    }
    if (!isNews()) return;
    fillList(list, imports, (each) => each.id, card);
    fill(empty, imports.length, () =>
      imports.length === 0 ? [t("noImports"), " ", make("a", { href: "#/new" }, t("newImport"))] : [],
    );
    more.hidden = next === null;
  }

  return { refresh };
}

function card(each) {
  return [
    make(
      "div",
      { class: "row" },
      make("a", { class: "name", href: `#/imports/${each.id}`, "data-id": each.id }, nameOf(each)),
      make("span", { class: `badge ${each.state}` }, t(`states.${each.state}`)),
      make("time", { class: "soft", datetime: each.createdAt }, dateText(each.createdAt)),
    ),
    bar(each),
    counters(each),
  ];
}
