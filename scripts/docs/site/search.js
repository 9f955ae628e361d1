// The search. The words of all pages are fetched when somebody begins to search, as scripts: a page that was opened from a
// folder may load nothing else.
(() => {
  const { base } = document.currentScript.dataset;
  const search = document.querySelector("search");
  const input = search.querySelector("input");
  const found = search.querySelector(".found");
  const status = found.querySelector("[role=status]");
  const list = found.querySelector("ul");
  const MOST = 12;

  const load = (name) =>
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${base}${name}`;
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error(`${name} could not be loaded`)));
      document.head.append(script);
    });
  let index;
  const ready = () =>
    (index ??= Promise.all([load("minisearch.js"), load("search-index.js")]).then(() => {
      const made = new globalThis.MiniSearch({
        idField: "address",
        fields: ["page", "heading", "text"],
        storeFields: ["page", "heading", "text"],
        searchOptions: {
          boost: { page: 3, heading: 5 },
          prefix: (term) => term.length > 2,
          fuzzy: (term) => (term.length > 4 ? 0.2 : false),
          combineWith: "AND",
        },
      });
      made.addAll(globalThis.SECTIONS);
      return made;
    }));

  function show(results, query) {
    status.textContent = results.length === 0 ? `Nothing found for “${query}”.` : `${results.length} places`;
    list.replaceChildren(...results.slice(0, MOST).map(toItem));
    found.hidden = false;
  }

  function toItem({ id, page, heading, text, terms }) {
    const link = document.createElement("a");
    link.href = `${base}${id}`;
    const title = document.createElement("b");
    title.textContent = heading === page ? page : `${page}: ${heading}`;
    const excerpt = document.createElement("span");
    excerpt.append(...marked(around(text, terms), terms));
    link.append(title, excerpt);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }

  function around(text, terms) {
    const lower = text.toLowerCase();
    const places = terms.map((term) => lower.indexOf(term)).filter((place) => place >= 0);
    const start = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 40);
    return `${start > 0 ? "… " : ""}${text.slice(start, start + 160)}`;
  }

  function marked(text, terms) {
    const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    if (escaped.length === 0) return [text];
    return text.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part, place) => {
      if (place % 2 === 0) return part;
      const mark = document.createElement("mark");
      mark.textContent = part;
      return mark;
    });
  }

  async function look() {
    const query = input.value.trim();
    if (query === "") {
      found.hidden = true;
      return;
    }
    try {
      const made = await ready();
      if (input.value.trim() === query) show(made.search(query), query);
    } catch (error) {
      index = undefined;
      status.textContent = `The search does not work: ${error.message}.`;
      found.hidden = false;
    }
  }

  input.addEventListener("focus", () => void ready().catch(() => (index = undefined)));
  input.addEventListener("input", () => void look());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(input|textarea)$/i.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && search.contains(document.activeElement)) {
      input.focus();
      found.hidden = true;
    } else if (/^Arrow(Down|Up)$/.test(event.key) && search.contains(document.activeElement) && !found.hidden) {
      event.preventDefault();
      const stops = [input, ...list.querySelectorAll("a")];
      const place = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      stops[Math.max(0, Math.min(stops.length - 1, place))].focus();
    } else if (event.key === "Enter" && document.activeElement === input) {
      list.querySelector("a")?.click();
    }
  });
  document.addEventListener("click", (event) => {
    if (!search.contains(event.target) || event.target.closest("a")) found.hidden = true;
  });
  // The list of pages is folded where there is no room beside the text.
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".pages").open = false;
  search.hidden = false;
})();
