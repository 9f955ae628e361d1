// Puts the page together: which catalog, its specs, the search; looked at again every second while something runs.
import { call as callServer, make, onSignIn, Refused } from "/apps/page.js";
import { hitLine, specLine } from "./specs.js";

const byId = (id) => document.getElementById(id);
const BUSY_MS = 1_000;
const QUIET_MS = 5_000;
let catalog = "";
let timer;
let shown = "";
let lost = "";
let searches = 0;

const call = (method, path, body) => callServer(method, `/api-catalogs${path}`, body);
const trouble = (text) => (byId("trouble").textContent = text);
const tell = (text) => (byId("told").textContent = text);

/** What somebody asked for: what went wrong with it is said until they ask for something else. */
async function safely(work) {
  trouble("");
  tell("");
  try {
    await work();
  } catch (error) {
    fail(error);
  }
}

const isLockedOut = (error) => error instanceof Refused && error.status === 401;

const said = ({ message, hint }) => [message, hint].filter(Boolean).join(" ");

function fail(error) {
  if (!isLockedOut(error)) return trouble(said(error));
  // The form says why.
  byId("main").hidden = true;
  trouble("");
}

const pathOf = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;
const at = (...parts) => pathOf(catalog, ...parts);
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

async function act(work, what) {
  await safely(async () => {
    await work();
    tell(what);
    await look();
  });
}

/** By itself: it takes back what it said, and nothing else. */
async function lookAgain() {
  try {
    await look();
    if (byId("trouble").textContent === lost) trouble("");
    lost = "";
  } catch (error) {
    if (byId("trouble").textContent !== "" && !isLockedOut(error)) return;
    fail(error);
    lost = byId("trouble").textContent;
  }
}

async function look() {
  clearTimeout(timer);
  const looked = catalog;
  let wait = QUIET_MS;
  try {
    const status = await call("GET", at());
    // Somebody went to another catalog meanwhile, which is looked at by itself.
    if (looked !== catalog) return;
    byId("title").textContent = status.name;
    byId("banner").textContent = status.specs.length === 0 ? "" : status.banner;
    // Focus and open details stay.
    const now = JSON.stringify(status.specs);
    if (now !== shown) draw(status.specs);
    shown = now;
    if (status.counts.running + status.counts.queued > 0) wait = BUSY_MS;
  } catch (error) {
    if (looked === catalog) throw error;
  } finally {
    if (looked === catalog) {
      clearTimeout(timer);
      timer = setTimeout(() => void lookAgain(), wait);
    }
  }
}

function draw(specs) {
  const list = byId("specs");
  const before = new Map([...list.children].map((line) => [line.dataset.spec, line]));
  const focused = document.activeElement?.closest("[data-spec]")?.dataset.spec;
  const place = focused && [...before.get(focused).querySelectorAll("button")].indexOf(document.activeElement);
  const isOpen = (name) => before.get(name)?.querySelector("details")?.open ?? false;
  list.replaceChildren(...specs.map((spec) => specLine(spec, acts, isOpen(spec.name))));
  if (focused) list.querySelectorAll(`[data-spec="${CSS.escape(focused)}"] button`)[place]?.focus();
  byId("nothing").hidden = specs.length > 0;
}

async function open(id) {
  // The buttons of the other's specs would act on the specs of this one that are called the same.
  if (id !== catalog) {
    byId("title").textContent = byId("catalog").selectedOptions[0].textContent;
    byId("banner").textContent = "";
    byId("specs").replaceChildren();
    byId("nothing").hidden = true;
  }
  catalog = id;
  shown = "";
  // What was searched for in the other is not shown here.
  searches += 1;
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
    byId("catalog").replaceChildren(...catalogs.map(({ id, name }) => make("option", { value: id }, name)));
    const wanted = location.hash.slice(1);
    const first = catalogs.find(({ id }) => id === wanted) ?? catalogs[0];
    byId("catalog").value = first.id;
    await open(first.id);
  });
}

async function upload(to, name, blob) {
  tell(`Sending ${name} …`);
  try {
    const { operations, changed } = await call("PUT", pathOf(to, "specs", name), blob);
    return changed ? `${name}: ${operations} operations.` : `${name} has not changed.`;
  } finally {
    tell("");
  }
}

/** Each of them, whatever becomes of the others; all to the catalog where this was asked for. */
async function uploadAll(to, files) {
  const [told, wrong] = [[], []];
  for (const { name, blob } of files) {
    try {
      told.push(await upload(to, name, blob));
    } catch (error) {
      if (isLockedOut(error)) throw error;
      wrong.push(`${name}: ${said(error)}`);
    }
  }
  await look();
  tell(told.join(" "));
  if (wrong.length > 0) throw new Error(wrong.join(" "));
}

onSignIn(start);
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
  const files = [...byId("files").files].map((file) => ({
    name: file.name.replace(/\.(json|ya?ml)$/i, ""),
    blob: file,
  }));
  // The same file again, mended, is a change too.
  const to = catalog;
  void safely(() => uploadAll(to, files)).finally(() => (byId("files").value = ""));
});
byId("sample").addEventListener("click", () => {
  const to = catalog;
  void safely(async () => await uploadAll(to, [{ name: "bookshop", blob: await (await fetch("sample.yaml")).blob() }]));
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  void safely(async () => {
    const query = new URLSearchParams({ q: byId("question").value, by: byId("by").value });
    const search = (searches += 1);
    const answer = await call("GET", `${at("search")}?${query}`).catch((error) => ({ error }));
    if (search !== searches) return;
    if (answer.error) throw answer.error;
    const { hits, notes } = answer;
    const found = byId("found");
    if (hits.length === 0) notes.push("Nothing was found.");
    found.replaceChildren(
      ...notes.map((note) => make("p", { class: "hint" }, note)),
      make("ol", { class: "cards" }, ...hits.map(hitLine)),
    );
    found.hidden = false;
  });
});
void start();
