// The articles of this device.
import { make } from "/apps/page.js";
import { fillList } from "../dom.js";
import { makeTurns } from "../turns.js";
import { dateText, t } from "../words.js";

const SHOWN = 200;

export function articlesView(main, { vault }) {
  const turn = makeTurns();
  const list = make("ul", { class: "cards" });
  const find = make("input", { id: "find", type: "search", autocomplete: "off", oninput: () => void refresh() });
  const empty = make("p", { class: "soft", hidden: true }, t("noArticles"));
  main.replaceChildren(
    make("h1", { tabindex: "-1" }, t("articles")),
    make("p", { class: "soft" }, t("encrypted")),
    make("p", { class: "choice" }, make("label", { for: "find" }, t("find")), find),
    list,
    empty,
  );

  async function refresh() {
    const isNews = turn();
    const all = (await vault?.list()) ?? [];
    if (!isNews()) return;
    const words = find.value.trim().toLowerCase();
    const found = all.filter(({ title, siteName, url }) =>
      `${title} ${siteName ?? ""} ${url}`.toLowerCase().includes(words),
    );
    fillList(list, found.slice(0, SHOWN), (each) => each.id, card);
    empty.hidden = found.length > 0;
  }

  return { refresh };
}

function card({ id, title, siteName, url, words, excerpt, savedAt, warning }) {
  return [
    make(
      "div",
      { class: "row" },
      make("a", { class: "name", href: `#/read/${id}`, "data-id": id }, title),
      warning && make("span", { class: `badge ${warning}` }, t(`badges.${warning}`)),
    ),
    excerpt && make("p", { class: "excerpt" }, excerpt),
    make(
      "p",
      { class: "soft" },
      [siteName ?? new URL(url).host, t("words", { count: words }), dateText(savedAt)].join(" · "),
    ),
  ];
}
