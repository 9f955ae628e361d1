// A new import: paste or choose a file, see what is in it, start.
import { fill, make, newId } from "/apps/page.js";
import { call } from "../api.js";
import { problem, t } from "../words.js";

const PAUSE_MS = 250;

export function newView(main, { me, say }) {
  let key = newId();
  let timer;
  let asked = 0;
  const text = make("textarea", {
    id: "links",
    rows: "8",
    placeholder: t("pasteHint"),
    spellcheck: "false",
    oninput: () => later(),
  });
  const file = make("input", {
    id: "file",
    type: "file",
    accept: ".txt,.csv,.html,.htm,.json,text/*",
    onchange: () => void readFile(),
  });
  const name = make("input", { id: "name", maxlength: "120", autocomplete: "off" });
  const again = make("input", { id: "again", type: "checkbox", onchange: () => void count() });
  const counts = make("div", { id: "counts", role: "status" });
  const start = make("button", { class: "main", disabled: true }, t("start", { count: 0 }));
  const againLine = make("p", { hidden: true }, make("label", { for: "again" }, again, ` ${t("again")}`));
  const { sample } = me;
  main.replaceChildren(
    make("h1", { tabindex: "-1" }, t("newImport")),
    make(
      "form",
      { id: "new", class: "card", onsubmit: (event) => void submit(event) },
      make("label", { for: "links" }, t("paste")),
      text,
      sample &&
        make(
          "p",
          { class: "soft" },
          make(
            "button",
            { type: "button", id: "sample", onclick: () => fillIn(sample.links.join("\n")) },
            t("trySample"),
          ),
          ` ${t("sampleNote")}`,
        ),
      make("label", { for: "file" }, t("orFile")),
      file,
      counts,
      againLine,
      make("label", { for: "name" }, t("nameLabel")),
      name,
      make("p", {}, start),
    ),
  );

  function fillIn(content) {
    text.value = content;
    void count();
  }

  async function readFile() {
    const chosen = file.files?.[0];
    if (!chosen) return;
    if (name.value === "") name.value = chosen.name.slice(0, 120);
    const bytes = await chosen.arrayBuffer();
    fillIn(decode(bytes));
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => void count(), PAUSE_MS);
  }

  async function count() {
    clearTimeout(timer);
    key = newId();
    const mine = (asked += 1);
    if (text.value.trim() === "") return show(null);
    try {
      const counted = await call("POST", "/preview", { text: text.value });
      if (mine === asked) show(counted);
    } catch (error) {
      if (mine === asked) say(problem(error));
    }
  }

  function show(counted) {
    const { valid = 0, saved = 0 } = counted?.counts ?? {};
    const isTooMany = counted !== null && counted.tooMany;
    start.disabled = valid === 0 || isTooMany;
    start.textContent = t("start", { count: valid });
    againLine.hidden = saved === 0;
    fill(counts, counted, () =>
      counted === null
        ? []
        : [
            make("p", { class: "sum" }, t("counted", counted.counts)),
            make("p", { class: "soft" }, t("format", counted)),
            isTooMany && make("p", { class: "why" }, t("tooMany", { max: counted.maxLinks })),
            counted.invalid.length > 0 &&
              make(
                "details",
                {},
                make("summary", {}, t("invalidOnes")),
                make(
                  "ul",
                  {},
                  counted.invalid.map((each) =>
                    make("li", {}, make("code", {}, each.text), ` (${t(`faults.${each.fault}`)})`),
                  ),
                ),
              ),
          ],
    );
  }

  async function submit(event) {
    event.preventDefault();
    start.disabled = true;
    try {
      const { id } = await call("POST", "/imports", { text: text.value, name: name.value, key, again: again.checked });
      // Who has gone elsewhere meanwhile stays there.
      if (start.isConnected) location.hash = `#/imports/${id}`;
    } catch (error) {
      say(problem(error));
      start.disabled = false;
    }
  }

  return { refresh: async () => {} };
}

/** Old exports are not in UTF-8. */
function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
