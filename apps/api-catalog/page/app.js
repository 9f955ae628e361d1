// Puts the page together: which catalog, its specs, the search; looked at again every second while something runs.
import { call, signIn, Unauthorized } from "./api.js";
import { element } from "./dom.js";
import { hitLine, specLine } from "./specs.js";

const byId = (id) => document.getElementById(id);
const BUSY_MS = 1_000;
const QUIET_MS = 5_000;
let catalog = "";
let timer;
let shown = "";

const trouble = (text) => (byId("trouble").textContent = text);
const tell = (text) => (byId("told").textContent = text);

/** What went wrong is said; without a token the sign-in is shown. */
async function safely(work) {
  try {
    await work();
    trouble("");
  } catch (error) {
    if (error instanceof Unauthorized) {
      byId("sign-in").hidden = false;
      byId("main").hidden = true;
    } else trouble(error.message);
  }
}

const at = (...parts) => `/${[catalog, ...parts].map(encodeURIComponent).join("/")}`;
const acts = {
  reembed: (name) => act(async () => await call("POST", at("specs", name, "reembed")), `${name} is embedded again.`),
  rename: (name) => {
    const to = prompt("New name", name);
    if (to) void act(async () => await call("PATCH", at("specs", name), { name: to }), `${name} is ${to} now.`);
  },
  remove: (name) => {
    if (confirm(`Delete ${name}?`))
      void act(async () => await call("DELETE", at("specs", name)), `${name} is deleted.`);
  },
};

async function act(work, said) {
  await safely(async () => {
    await work();
    tell(said);
    await look();
  });
}

async function look() {
  clearTimeout(timer);
  let wait = QUIET_MS;
  try {
    const status = await call("GET", at());
    byId("title").textContent = status.name;
    byId("banner").textContent = status.specs.length === 0 ? "" : status.banner;
    // Only what changed is drawn anew: focus and open details stay.
    const now = JSON.stringify(status.specs);
    if (now !== shown) draw(status.specs);
    shown = now;
    if (status.counts.running + status.counts.queued > 0) wait = BUSY_MS;
  } finally {
    timer = setTimeout(() => void safely(look), wait);
  }
}

function draw(specs) {
  const list = byId("specs");
  const before = new Map([...list.children].map((line) => [line.dataset.spec, line]));
  const focused = document.activeElement?.closest("[data-spec]")?.dataset.spec;
  const place = focused && [...before.get(focused).querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...specs.map((spec) => specLine(spec, acts)));
  if (focused) list.querySelectorAll(`[data-spec="${CSS.escape(focused)}"] button`)[place]?.focus();
  byId("nothing").hidden = specs.length > 0;
}

async function open(id) {
  catalog = id;
  shown = "";
  byId("found").hidden = true;
  location.hash = id;
  byId("main").hidden = false;
  await look();
}

async function start() {
  await safely(async () => {
    let { catalogs } = await call("GET", "");
    if (catalogs.length === 0) {
      await call("POST", "", { id: "main", name: "Main" }).catch(() => {});
      ({ catalogs } = await call("GET", ""));
    }
    byId("sign-in").hidden = true;
    byId("catalog").replaceChildren(...catalogs.map(({ id, name }) => element("option", { value: id }, name)));
    const wanted = decodeURIComponent(location.hash.slice(1));
    const first = catalogs.find(({ id }) => id === wanted) ?? catalogs[0];
    byId("catalog").value = first.id;
    await open(first.id);
  });
}

async function upload(name, blob) {
  const { operations, changed } = await call("PUT", at("specs", name), blob);
  tell(changed ? `${name}: ${operations} operations.` : `${name} has not changed.`);
}

byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(byId("token").value);
  void start();
});
byId("catalog").addEventListener("change", () => void safely(() => open(byId("catalog").value)));
byId("new-catalog").addEventListener("submit", (event) => {
  event.preventDefault();
  void safely(async () => {
    const id = byId("catalog-id").value;
    await call("POST", "", { id });
    byId("catalog-id").value = "";
    location.hash = id;
    await start();
  });
});
byId("files").addEventListener("change", () => {
  void safely(async () => {
    for (const file of byId("files").files) await upload(file.name.replace(/\.(json|ya?ml)$/i, ""), file);
    byId("files").value = "";
    await look();
  });
});
byId("sample").addEventListener("click", () => {
  void safely(async () => {
    await upload("bookshop", await (await fetch("sample.yaml")).blob());
    await look();
  });
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  void safely(async () => {
    const query = new URLSearchParams({ q: byId("question").value, by: byId("by").value });
    const { hits, trouble: why, isComplete } = await call("GET", `${at("search")}?${query}`);
    const found = byId("found");
    const notes = [
      isComplete ? null : "Indexing is still going on: there may be more by meaning.",
      why === null ? null : `By words only: ${why}`,
      hits.length === 0 ? "Nothing was found." : null,
    ].filter(Boolean);
    found.replaceChildren(
      ...notes.map((note) => element("p", { class: "hint" }, note)),
      element("ol", {}, ...hits.map(hitLine)),
    );
    found.hidden = false;
  });
});
void start();
