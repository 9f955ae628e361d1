// One article. The server has sanitised it; here it is built anew from the few elements an article needs, so that nothing
// else can come through, whatever was stored.
import { make } from "/apps/page.js";
import { call } from "../api.js";
import { makeTurns } from "../turns.js";
import { dateText, t } from "../words.js";

const KEPT = new Set(
  (
    "P BR HR H2 H3 H4 H5 H6 UL OL LI DL DT DD BLOCKQUOTE PRE CODE KBD SAMP EM STRONG B I U S SUB SUP SMALL MARK ABBR CITE Q A " +
    "FIGURE FIGCAPTION TABLE CAPTION THEAD TBODY TFOOT TR TH TD TIME"
  ).split(" "),
);
const DROPPED = new Set(
  "SCRIPT STYLE IFRAME OBJECT EMBED FORM INPUT BUTTON SVG MATH TEMPLATE NOSCRIPT LINK META".split(" "),
);
const DEEPEST = 200;

export function readerView(main, { place, vault, say }) {
  const id = place[1];
  const turn = makeTurns();
  let shown = false;

  async function refresh() {
    if (shown) return;
    const isNews = turn();
    const article = await vault?.read(id);
    if (!isNews()) return;
    if (!article) {
      main.replaceChildren(
        make("h1", { tabindex: "-1" }, t("noArticle")),
        make("p", {}, make("a", { href: "#/articles" }, t("articles"))),
      );
      return;
    }
    shown = true;
    const { title, byline, siteName, url, words, savedAt, publishedAt, language, warning, html } = article;
    const body = make("div", { class: "text", lang: language });
    body.append(...build(new DOMParser().parseFromString(html, "text/html").body, 0));
    const facts = [
      byline,
      siteName ?? new URL(url).host,
      publishedAt && dateOf(publishedAt),
      t("words", { count: words }),
      dateText(savedAt),
    ];
    main.replaceChildren(
      make(
        "article",
        { class: "reader" },
        make("h1", { tabindex: "-1", lang: language }, title),
        make("p", { class: "soft" }, [...new Set(facts.filter(Boolean))].join(" · ")),
        make(
          "p",
          { class: "actions" },
          make("a", { href: url, target: "_blank", rel: "noreferrer noopener" }, t("original")),
          make("button", { type: "button", id: "remove", onclick: () => void remove(article) }, t("remove")),
        ),
        warning && rescue(),
        body,
      ),
    );
    main.querySelector("h1").focus();
  }

  /** The reader has been to the page and brings the text. */
  function rescue() {
    const text = make("textarea", { id: "pasted", rows: "5" });
    return make(
      "form",
      {
        class: "card rescue",
        onsubmit: async (event) => {
          event.preventDefault();
          const paragraphs = text.value.split(/\n\s*\n/).filter((each) => each.trim() !== "");
          if (paragraphs.length === 0) return;
          const holder = make(
            "div",
            {},
            paragraphs.map((each) => make("p", {}, each.trim())),
          );
          await vault.replaceBody(id, holder.innerHTML);
          shown = false;
          await refresh();
        },
      },
      make("p", {}, make("strong", {}, t("wallTitle"))),
      make("label", { for: "pasted" }, t("wallPaste")),
      text,
      make("p", {}, make("button", {}, t("wallSave"))),
    );
  }

  async function remove({ asked, url }) {
    if (!confirm(t("sureRemove"))) return;
    try {
      await call("POST", "/forget", { urls: [asked, url] });
      await vault.remove(id);
      if (main.isConnected) location.hash = "#/articles";
    } catch (error) {
      say(error.message);
    }
  }

  return { refresh };
}

const dateOf = (text) => (Number.isNaN(Date.parse(text)) ? null : dateText(text));

function build(parent, depth) {
  const made = [];
  for (const node of parent.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) made.push(document.createTextNode(node.data));
    if (node.nodeType !== Node.ELEMENT_NODE || DROPPED.has(node.tagName.toUpperCase()) || depth > DEEPEST) continue;
    // The page's own heading is the title.
    const name = node.tagName === "H1" ? "H2" : node.tagName;
    const children = build(node, depth + 1);
    if (!KEPT.has(name)) made.push(...children);
    else made.push(make(name, attributesOf(node), children));
  }
  return made;
}

function attributesOf(node) {
  if (node.tagName !== "A") return {};
  const href = node.getAttribute("href") ?? "";
  return /^https?:\/\//i.test(href) ? { href, target: "_blank", rel: "noreferrer noopener" } : {};
}
