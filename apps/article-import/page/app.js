// Puts the page together: who you are, which view the address names, the change feed, the pickup.
import { make, newId, onSignIn } from "/apps/page.js";
import { call } from "./api.js";
import { follow } from "./feed.js";
import { takeArticles } from "./pickup.js";
import { makeTurns } from "./turns.js";
import { openVault } from "./vault.js";
import { articlesView } from "./views/articles.js";
import { importView } from "./views/import.js";
import { listView } from "./views/list.js";
import { newView } from "./views/new.js";
import { readerView } from "./views/reader.js";
import { language, nameOf, problem, setLanguage, t } from "./words.js";

const VIEWS = new Map([
  ["new", newView],
  ["imports", importView],
  ["articles", articlesView],
  ["read", readerView],
]);
const DEVICE = "article-import-device";
const SEEN = "article-import-finished";
const REFRESH_MS = 300;
const TOLD_MS = 12_000;
const LOOK_EVERY_MS = 10_000;

const byId = (id) => document.getElementById(id);
let hiding;
/** Read out, and shown for a while. */
function say(text) {
  clearTimeout(hiding);
  byId("told").textContent = text;
  hiding = setTimeout(() => (byId("told").textContent = ""), TOLD_MS);
}
const warnings = new Map();
/** What a part of the page warns of stays until that part takes it back, in whichever language. */
function warn(part, words) {
  if (words === null) warnings.delete(part);
  else warnings.set(part, words);
  showWarnings();
}

function showWarnings() {
  const text = [...new Set([...warnings.values()].map((words) => words()))].join(" ");
  // Read out when it is set.
  if (byId("trouble").textContent !== text) byId("trouble").textContent = text;
}

const offline = () => t("offline");

const context = { me: null, vault: null, device: deviceId(), say, place: [] };
const turn = makeTurns();
let view = null;
let timer;
let pickup;
let stopFeed = () => {};

function deviceId() {
  const known = localStorage.getItem(DEVICE);
  if (known) return known;
  const made = newId();
  localStorage.setItem(DEVICE, made);
  return made;
}

function translate() {
  document.documentElement.lang = language;
  document.title = t("appName");
  byId("language").value = language;
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = t(element.dataset.word);
  showWarnings();
}

function show() {
  context.place = location.hash.replace(/^#\/?/, "").split("/");
  const makeView = VIEWS.get(context.place[0]) ?? listView;
  for (const link of document.querySelectorAll("#nav a")) {
    const isHere = link.hash.replace(/^#\/?/, "") === (context.place[0] === "list" ? "" : context.place[0]);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  // Each has its own place: one that gets its answer after it has gone draws where nobody looks.
  const box = make("div");
  byId("main").replaceChildren(box);
  warn("view", null);
  view = makeView(box, context);
  void refresh().then(() => box.querySelector("h1")?.focus());
}

async function refresh() {
  clearTimeout(timer);
  timer = undefined;
  const current = view;
  const isNews = turn();
  let warning = null;
  try {
    await current?.refresh();
  } catch (error) {
    warning = () => (error.status === undefined ? offline() : problem(error));
  }
  if (current === view && isNews()) warn("view", warning);
}

/** Soon, and once for many changes. */
function refreshSoon() {
  timer ??= setTimeout(() => void refresh(), REFRESH_MS);
}

function onChanges(changes) {
  refreshSoon();
  pickup?.ring();
  for (const batch of changes?.batches ?? [])
    if (batch.kind === "articles.import" && batch.state === "done") finished(batch);
}

/** Told once for each time that an import was done, by whichever tab heard of it first. */
function finished(batch) {
  const seen = JSON.parse(localStorage.getItem(SEEN) ?? "{}");
  if ((seen[batch.id] ?? 0) >= batch.completions) return;
  const kept = Object.entries({ ...seen, [batch.id]: batch.completions }).slice(-200);
  localStorage.setItem(SEEN, JSON.stringify(Object.fromEntries(kept)));
  const { countedAs, counts } = batch;
  const name = nameOf({ name: batch.fields?.name ?? null, createdAt: batch.createdAt });
  say(t("finished", { name, saved: countedAs.saved, error: counts.error }));
  dispatchEvent(new CustomEvent("ArticleImportFinished", { detail: { id: batch.id } }));
}

async function begin() {
  try {
    context.me = await call("GET", "/me");
  } catch (error) {
    if (error.status === 401) return;
    warn("server", offline);
    setTimeout(() => void begin(), 2_000);
    return;
  }
  const { owner, worker } = context.me;
  warn("server", null);
  warn("worker", worker ? null : () => t("workerOff"));
  try {
    context.vault = await openVault(owner);
    warn("vault", null);
  } catch (error) {
    warn("vault", () => (error.message === "insecure" ? t("insecure") : error.message));
  }
  stopFeed();
  pickup?.stop();
  stopFeed = follow(owner, {
    onChanges,
    onLive: (isLive) => warn("feed", isLive ? null : offline),
  });
  const others = new BroadcastChannel(`article-import ${owner}`);
  others.addEventListener("message", () => refreshSoon());
  if (context.vault) {
    pickup = takeArticles({
      owner,
      device: context.device,
      vault: context.vault,
      onTaken() {
        refreshSoon();
        others.postMessage("taken");
      },
      onTrouble(error) {
        // A server that is away is told by the feed; what is told here is that this device cannot store.
        if (error instanceof DOMException) warn("store", () => t("cannotStore", { why: error.message || error.name }));
        else if (error === null) warn("store", null);
      },
    });
  }
  show();
  // What was given up because no device came for it is fetched again now that one did.
  await call("POST", "/returned", {}).catch(() => {});
}

onSignIn(begin);
byId("language").addEventListener("change", (event) => {
  setLanguage(event.target.value);
  translate();
  show();
});
addEventListener("hashchange", () => context.me && show());
document.addEventListener("visibilitychange", () => !document.hidden && context.me && refreshSoon());
setInterval(() => !document.hidden && context.me && refreshSoon(), LOOK_EVERY_MS);
translate();
void begin();
