// What the pages of apps share, served at /apps/page.js: calls with the token of this tab (the dashboard's), the form that
// asks for one, ids, elements whose texts stay texts, and parts that change only when what they show has changed.
// docs/apps.md says how it is used.

const STORE = "holdfast-token";

/** What the server said to a call that it did not do. */
export class Refused extends Error {
  constructor(status, { code, message, hint } = {}) {
    super(message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = code ?? "";
    this.hint = hint ?? "";
  }
}

export const token = () => sessionStorage.getItem(STORE);

/** For requests that are not made by call(). */
export const headers = () => (token() ? { authorization: `Bearer ${token()}` } : {});

/** The answer's JSON. A Blob is sent as it is, anything else as JSON; a 401 shows the form that asks for a token. */
export async function call(method, path, body) {
  const isBlob = body instanceof Blob;
  const type = isBlob ? "application/octet-stream" : "application/json";
  const answer = await fetch(path, {
    method,
    headers: { ...headers(), ...(body === undefined ? {} : { "content-type": type }) },
    ...(body === undefined ? {} : { body: isBlob ? body : JSON.stringify(body) }),
  });
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) askForToken(content.error?.message);
  if (!answer.ok) throw new Refused(answer.status, content.error);
  return content;
}

const signIn = () => document.querySelector("form#sign-in");

function askForToken(message = "The token was not accepted.") {
  const form = signIn();
  if (!form) return;
  // Who has shown no token has done nothing wrong.
  const why = token() ? message : "";
  fill(
    form.querySelector("[role=alert]") ?? form.appendChild(make("p", { class: "why", role: "alert" })),
    why,
    () => why,
  );
  if (!form.hidden) return;
  form.hidden = false;
  form.querySelector("input").focus();
}

/** The page's form #sign-in, hidden until a call is answered with 401: what it takes is kept for this tab, and `again` looks. */
export function onSignIn(again) {
  signIn().addEventListener("submit", (event) => {
    event.preventDefault();
    const input = signIn().querySelector("input");
    sessionStorage.setItem(STORE, input.value.trim());
    input.value = "";
    signIn().hidden = true;
    void Promise.resolve(again()).catch(tell);
  });
}

/** A 401 has its form; anything else should be seen by whoever looks for it. */
function tell(error) {
  if (error?.status !== 401) reportError(error);
}

/** A random UUID, also where crypto.randomUUID() is not: on plain http, on another machine. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** An element. Attributes that are null, undefined or false are left out, as such children are; `onclick` and the like listen. */
export function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (isThere(value)) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter(isThere));
  return element;
}

const isThere = (value) => value !== null && value !== undefined && value !== false;
const shown = new WeakMap();

/** Replaces the children if `what` they show has changed, and says whether it has. The focus stays on the same data-id. */
export function fill(element, what, build) {
  const text = JSON.stringify(what);
  if (shown.get(element) === text) return false;
  shown.set(element, text);
  const { activeElement } = document;
  const focused = element.contains(activeElement) ? activeElement.dataset.id : undefined;
  element.replaceChildren(...[build()].flat().filter(isThere));
  if (focused !== undefined) element.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  return true;
}

/** Looks now and again after each pause while somebody sees the page. Returns what looks at once, after a look under way. */
export function watch(look, pauseMs) {
  let last = Promise.resolve();
  const refresh = () => (last = last.catch(() => {}).then(look));
  void (async () => {
    for (;;) {
      if (!document.hidden) await refresh().catch(tell);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  })();
  return refresh;
}
