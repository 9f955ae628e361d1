// Puts the page together: who you are, which view the address names, the change feed, the pickup.
import { onSignIn } from "/apps/page.js";
import { call } from "./api.js";
import { follow } from "./feed.js";
import { takeArticles } from "./pickup.js";
import { openVault } from "./vault.js";
import { articlesView } from "./views/articles.js";
import { importView } from "./views/import.js";
import { listView } from "./views/list.js";
import { newView } from "./views/new.js";
import { readerView } from "./views/reader.js";
import { language, nameOf, problem, setLanguage, t } from "./words.js";

const VIEWS = { new: newView, imports: importView, articles: articlesView, read: readerView };
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
const trouble = (text) => (byId("trouble").textContent = text);

const context = { me: null, vault: null, device: deviceId(), say, place: [] };
let view = null;
let timer;
let isLive = false;
let pickup;
let stopFeed = () => {};

function deviceId() {
  const known = localStorage.getItem(DEVICE);
  if (known) return known;
  const made = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
  localStorage.setItem(DEVICE, made);
  return made;
}

function translate() {
  document.documentElement.lang = language;
  document.title = t("appName");
  byId("language").value = language;
  for (const element of document.querySelectorAll("[data-word]")) element.textContent = t(element.dataset.word);
}

function show() {
  context.place = decodeURIComponent(location.hash.replace(/^#\/?/, "")).split("/");
  const make = VIEWS[context.place[0]] ?? listView;
  for (const link of document.querySelectorAll("#nav a")) {
    const isHere = link.hash.replace(/^#\/?/, "") === (context.place[0] === "list" ? "" : context.place[0]);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view = make(byId("main"), context);
  void refresh().then(() => byId("main").querySelector("h1")?.focus());
}

async function refresh() {
  clearTimeout(timer);
  timer = undefined;
  const current = view;
  try {
    await current?.refresh();
    if (isLive) trouble("");
  } catch (error) {
    if (current === view) trouble(error.status === undefined ? t("offline") : problem(error));
  }
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
    trouble(t("offline"));
    setTimeout(() => void begin(), 2_000);
    return;
  }
  const { owner } = context.me;
  trouble(context.me.worker ? "" : t("workerOff"));
  try {
    context.vault = await openVault(owner);
  } catch (error) {
    trouble(error.message === "insecure" ? t("insecure") : error.message);
  }
  stopFeed();
  pickup?.stop();
  stopFeed = follow(owner, {
    onChanges,
    onLive(now) {
      isLive = now;
      if (!now) trouble(t("offline"));
      else trouble(context.me.worker ? "" : t("workerOff"));
    },
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
        if (error instanceof DOMException) trouble(t("cannotStore", { why: error.message || error.name }));
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
