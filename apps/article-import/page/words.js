// What the page says, in English and in German.
const n = (count, one, many) => (count === 1 ? one : many);

const WORDS = {
  en: {
    appName: "Article import",
    imports: "Imports",
    newImport: "New import",
    articles: "Articles",
    language: "Language",
    dashboard: "Dashboard",
    wantsToken: "This server wants a token.",
    signIn: "Sign in",
    loading: "Loading …",
    offline: "No connection. The import goes on; this page will catch up.",
    insecure: "This browser cannot encrypt here. Open the page over https, or on this machine.",
    cannotStore: ({ why }) => `This device cannot store articles: ${why}. They wait on the server.`,
    workerOff: "This server runs no imports itself (ARTICLES_IMPORT_WORKER_DISABLED); another process has to.",
    // New import
    paste: "Links, one on each line or just somewhere in a text",
    pasteHint: "https://example.com/an-article",
    orFile: "Or a file: text, CSV, bookmarks of a browser, an export of Pocket or Instapaper",
    nameLabel: "Name (optional)",
    again: "Also import those that are saved already",
    start: ({ count }) => (count > 0 ? `Import ${count} ${n(count, "link", "links")}` : "Import"),
    trySample: "Fill in the sample links",
    sampleNote: "They are served by this machine: no network is needed.",
    counted: ({ valid, invalid, duplicates, saved }) =>
      `${valid} ${n(valid, "link", "links")}, ${duplicates} ${n(duplicates, "duplicate", "duplicates")}, ${invalid} invalid, ${saved} saved already`,
    format: ({ format }) =>
      `Read as ${{ text: "text", csv: "CSV", pocket: "an export of Pocket", instapaper: "an export of Instapaper", bookmarks: "bookmarks" }[format] ?? format}`,
    tooMany: ({ max }) => `At most ${max} links fit into one import. Split the list.`,
    invalidOnes: "These are no links that can be imported",
    faults: {
      "not-a-link": "not a link",
      "not-http": "neither http nor https",
      credentials: "has a password in it",
      "no-host": "has no proper host",
      "too-long": "too long",
    },
    // List
    filters: { all: "All", active: "Active", done: "Done", errors: "With errors" },
    filterLabel: "Show",
    noImports: "Nothing here yet.",
    more: "Show more",
    importOf: ({ date }) => `Import of ${date}`,
    states: { queued: "waiting", running: "running", paused: "paused", done: "done", cancelled: "cancelled" },
    // One import
    pause: "Pause",
    resume: "Resume",
    cancel: "Cancel",
    retryFailed: ({ count }) => `Retry ${count} failed`,
    delete: "Delete",
    sureCancel: "Cancel this import? What waits is not fetched any more.",
    sureDelete: "Delete this import? Its articles stay.",
    progress: ({ ended, total }) => `${ended} of ${total} done`,
    rate: ({ perMinute }) => `${perMinute} a minute`,
    eta: ({ time }) => `about ${time} left`,
    seconds: ({ count }) => `${count} s`,
    minutes: ({ count }) => `${count} min`,
    hours: ({ count }) => `${count} h`,
    counters: {
      saved: "saved",
      "consent-wall": "with a consent page",
      duplicate: "saved before",
      error: "failed",
      cancelled: "cancelled",
      "handed-over": "on their way to you",
      running: "being read",
      pending: "waiting",
    },
    badges: {
      saved: "saved",
      "consent-wall": "consent page",
      duplicate: "saved before",
      error: "failed",
      cancelled: "cancelled",
      "handed-over": "ready to be taken",
      running: "reading",
      pending: "waiting",
      retrying: ({ attempt }) => `retrying (${attempt} ${n(attempt, "try", "tries")})`,
    },
    allStates: "All links",
    stateLabel: "Links",
    read: "Read",
    openPage: "Open page",
    retry: "Retry",
    elsewhere: "on another device",
    bounced: ({ count }) => `fetched again ${n(count, "once", `${count} times`)}: nobody took it in time`,
    consentHint: "The page asked for consent. Open it yourself, then paste the text into the article.",
    nextIn: ({ time }) => `again in ${time}`,
    gone: "There is no such import.",
    finished: ({ name, saved, error }) => `${name}: finished. ${saved} saved, ${error} failed.`,
    retried: ({ count }) => `${count} ${n(count, "link waits", "links wait")} again.`,
    // Articles and reader
    noArticles: "No articles on this device yet.",
    encrypted: "These articles are on this device only, encrypted. The server has none of their texts.",
    words: ({ count }) => `${count} words`,
    find: "Find",
    remove: "Remove",
    sureRemove: "Remove this article from this device?",
    noArticle: "This article is not on this device.",
    original: "Original page",
    wallTitle: "This may be a consent page, not the article",
    wallPaste: "Paste the text of the article here",
    wallSave: "Use this text",
    back: "Back",
    problems: {},
  },
  de: {
    appName: "Artikel-Import",
    imports: "Importe",
    newImport: "Neuer Import",
    articles: "Artikel",
    language: "Sprache",
    dashboard: "Dashboard",
    wantsToken: "Dieser Server verlangt ein Token.",
    signIn: "Anmelden",
    loading: "Lädt …",
    offline: "Keine Verbindung. Der Import läuft weiter; diese Seite holt auf.",
    insecure: "Dieser Browser kann hier nicht verschlüsseln. Öffne die Seite über https oder auf diesem Rechner.",
    cannotStore: ({ why }) => `Dieses Gerät kann keine Artikel speichern: ${why}. Sie warten auf dem Server.`,
    workerOff:
      "Dieser Server importiert selbst nichts (ARTICLES_IMPORT_WORKER_DISABLED); ein anderer Prozess muss es tun.",
    paste: "Links, einer pro Zeile oder irgendwo in einem Text",
    pasteHint: "https://example.com/ein-artikel",
    orFile: "Oder eine Datei: Text, CSV, Lesezeichen eines Browsers, ein Export von Pocket oder Instapaper",
    nameLabel: "Name (freiwillig)",
    again: "Auch importieren, was schon gespeichert ist",
    start: ({ count }) => (count > 0 ? `${count} ${n(count, "Link", "Links")} importieren` : "Importieren"),
    trySample: "Beispiel-Links einsetzen",
    sampleNote: "Sie liegen auf diesem Rechner: kein Netz nötig.",
    counted: ({ valid, invalid, duplicates, saved }) =>
      `${valid} ${n(valid, "Link", "Links")}, ${duplicates} doppelt, ${invalid} ungültig, ${saved} schon gespeichert`,
    format: ({ format }) =>
      `Gelesen als ${{ text: "Text", csv: "CSV", pocket: "Export von Pocket", instapaper: "Export von Instapaper", bookmarks: "Lesezeichen" }[format] ?? format}`,
    tooMany: ({ max }) => `Höchstens ${max} Links passen in einen Import. Teile die Liste.`,
    invalidOnes: "Das sind keine Links, die sich importieren lassen",
    faults: {
      "not-a-link": "kein Link",
      "not-http": "weder http noch https",
      credentials: "enthält ein Passwort",
      "no-host": "kein richtiger Host",
      "too-long": "zu lang",
    },
    filters: { all: "Alle", active: "Laufende", done: "Fertige", errors: "Mit Fehlern" },
    filterLabel: "Zeigen",
    noImports: "Hier ist noch nichts.",
    more: "Mehr zeigen",
    importOf: ({ date }) => `Import vom ${date}`,
    states: { queued: "wartet", running: "läuft", paused: "angehalten", done: "fertig", cancelled: "abgebrochen" },
    pause: "Anhalten",
    resume: "Fortsetzen",
    cancel: "Abbrechen",
    retryFailed: ({ count }) => `${count} Fehlgeschlagene wiederholen`,
    delete: "Löschen",
    sureCancel: "Diesen Import abbrechen? Was wartet, wird nicht mehr geholt.",
    sureDelete: "Diesen Import löschen? Seine Artikel bleiben.",
    progress: ({ ended, total }) => `${ended} von ${total} erledigt`,
    rate: ({ perMinute }) => `${perMinute} pro Minute`,
    eta: ({ time }) => `noch etwa ${time}`,
    seconds: ({ count }) => `${count} s`,
    minutes: ({ count }) => `${count} min`,
    hours: ({ count }) => `${count} h`,
    counters: {
      saved: "gespeichert",
      "consent-wall": "mit Zustimmungsseite",
      duplicate: "schon da",
      error: "fehlgeschlagen",
      cancelled: "abgebrochen",
      "handed-over": "unterwegs zu dir",
      running: "werden gelesen",
      pending: "warten",
    },
    badges: {
      saved: "gespeichert",
      "consent-wall": "Zustimmungsseite",
      duplicate: "schon da",
      error: "fehlgeschlagen",
      cancelled: "abgebrochen",
      "handed-over": "liegt bereit",
      running: "wird gelesen",
      pending: "wartet",
      retrying: ({ attempt }) => `neuer Versuch (bisher ${attempt})`,
    },
    allStates: "Alle Links",
    stateLabel: "Links",
    read: "Lesen",
    openPage: "Seite öffnen",
    retry: "Wiederholen",
    elsewhere: "auf einem anderen Gerät",
    bounced: ({ count }) => `${n(count, "einmal", `${count}-mal`)} neu geholt: niemand hat ihn rechtzeitig abgeholt`,
    consentHint: "Die Seite wollte eine Zustimmung. Öffne sie selbst und füge den Text in den Artikel ein.",
    nextIn: ({ time }) => `wieder in ${time}`,
    gone: "Diesen Import gibt es nicht.",
    finished: ({ name, saved, error }) => `${name}: fertig. ${saved} gespeichert, ${error} fehlgeschlagen.`,
    retried: ({ count }) => `${count} ${n(count, "Link wartet", "Links warten")} wieder.`,
    noArticles: "Auf diesem Gerät sind noch keine Artikel.",
    encrypted: "Diese Artikel sind nur auf diesem Gerät, verschlüsselt. Der Server hat keinen ihrer Texte.",
    words: ({ count }) => `${count} Wörter`,
    find: "Suchen",
    remove: "Entfernen",
    sureRemove: "Diesen Artikel von diesem Gerät entfernen?",
    noArticle: "Dieser Artikel ist nicht auf diesem Gerät.",
    original: "Originalseite",
    wallTitle: "Das ist vielleicht eine Zustimmungsseite und nicht der Artikel",
    wallPaste: "Füge hier den Text des Artikels ein",
    wallSave: "Diesen Text nehmen",
    back: "Zurück",
    problems: {
      ARTICLES_NOT_FOUND: "Diese Seite gibt es nicht (404).",
      ARTICLES_GONE: "Diese Seite gibt es nicht mehr (410).",
      ARTICLES_FORBIDDEN: "Die Website zeigt diese Seite nicht jedem.",
      ARTICLES_REFUSED_BY_SITE: "Die Website hat abgelehnt.",
      ARTICLES_TOO_MANY_REQUESTS: "Die Website bittet um Pause.",
      ARTICLES_SITE_DOWN: "Die Website konnte nicht antworten.",
      ARTICLES_TIMEOUT: "Die Website war zu langsam.",
      ARTICLES_UNREACHABLE: "Die Website war nicht zu erreichen.",
      ARTICLES_UNKNOWN_HOST: "Diesen Namen gibt es im Netz nicht.",
      ARTICLES_PRIVATE_ADDRESS: "Diese Adresse ist nicht öffentlich.",
      ARTICLES_BAD_REDIRECT: "Die Weiterleitung führt im Kreis oder an einen falschen Ort.",
      ARTICLES_TOO_LARGE: "Die Seite ist zu groß.",
      ARTICLES_TOO_SLOW: "Die Seite zu lesen hat zu lange gedauert.",
      ARTICLES_NOT_A_PAGE: "Das ist keine Webseite.",
      ARTICLES_NO_ARTICLE: "Auf der Seite ist kein Artikel.",
      ARTICLES_UNREADABLE: "Die Seite lässt sich nicht lesen.",
      ARTICLES_ROBOTS: "Die Website will nicht, dass Programme diese Seite lesen (robots.txt).",
      expired: "Niemand hat den Artikel rechtzeitig abgeholt.",
      ARTICLES_NO_LINKS: "Darin ist kein Link.",
      ARTICLES_IMPORT_UNKNOWN: "Diesen Import gibt es nicht.",
    },
  },
};

export const LANGUAGES = Object.keys(WORDS);
const STORE = "article-import-language";
const preferred = () =>
  localStorage.getItem(STORE) ??
  (navigator.languages ?? []).map((tag) => tag.slice(0, 2)).find((tag) => tag in WORDS) ??
  "en";

export let language = preferred();

export function setLanguage(chosen) {
  language = chosen;
  localStorage.setItem(STORE, chosen);
}

/** t("states.done"), t("progress", { ended, total }). */
export function t(path, values = {}) {
  const word = path.split(".").reduce((at, part) => at?.[part], WORDS[language]);
  return typeof word === "function" ? word(values) : (word ?? path);
}

/** What went wrong, in the reader's language where there are words for it. */
export const problem = ({ code, message }) => WORDS[language].problems[code] ?? message;

export function timeLeft(ms) {
  const seconds = Math.max(1, Math.round(ms / 1000));
  if (seconds < 90) return t("seconds", { count: seconds });
  return seconds < 5400
    ? t("minutes", { count: Math.round(seconds / 60) })
    : t("hours", { count: Math.round(seconds / 3600) });
}

export const dateText = (at) => new Date(at).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
export const nameOf = ({ name, createdAt }) => name ?? t("importOf", { date: dateText(createdAt) });
/** For a test that the two say the same things. */
export const ALL_WORDS = WORDS;
