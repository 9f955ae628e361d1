// <job-progress src="…/api/v1/views/hv1_…">: how far one job or one batch is, for the end users of an app. It has no
// dependencies, needs no token but the view in its address, and shows what that view shows: no payload, no error's text.
//
// It listens to the view's events, asks every few seconds where it cannot, is silent while its page is hidden, and stops when
// the work has ended. What changes is told to screen readers politely and not more often than every ten seconds;
// what it says in words, the icon and the bar only repeat. Texts can be translated: `element.texts = { done: "Fertig" }`.
// Colours and fonts are the page's; `--job-progress-bar`, `--job-progress-track` and the parts (status, bar, detail) can be styled.

/** What the server says about the work: no payload, no error's text. */
export interface JobProgressView {
  what: "job" | "batch";
  status: string;
  done: number | null;
  total: number | null;
  note: string | null;
  attempt: number | null;
  maxAttempts: number | null;
  errors: number | null;
  warnings: number | null;
  etaMs: number | null;
  nextAt: string | null;
  startedAt: string | null;
  finishedAt: string | null;
}

const TEXTS = {
  loading: "Looking …",
  scheduled: "Scheduled",
  ready: "Waiting",
  queued: "Waiting",
  running: "Working",
  retrying: "Trying again ({tries})",
  stuck: "Waiting for a worker",
  paused: "Paused",
  done: "Done",
  doneWithErrors: "Done, {n} failed",
  dead: "Failed",
  cancelled: "Cancelled",
  gone: "Not available any more",
  away: "No connection; trying again",
  oneTry: "1 try",
  tries: "{n} tries",
  of: "{done} of {total}",
  failed: "{n} failed",
  left: "about {time} left",
  next: "next try at {time}",
  starts: "starts at {time}",
};

/** Everything that the element says, for translations; words in braces are filled in. */
export type JobProgressTexts = typeof TEXTS;

const ICONS: Record<string, string> = {
  running: "▶",
  retrying: "↻",
  done: "✓",
  dead: "✕",
  cancelled: "–",
  paused: "❚❚",
  gone: "–",
  away: "!",
};

const STYLE = `
:host { display: inline-block; min-width: 12em; max-width: 100%; font: inherit; color: inherit; }
:host([hidden]) { display: none; }
.line { display: flex; flex-wrap: wrap; gap: 0 0.75em; align-items: baseline; }
.status { font-weight: 600; }
.detail { opacity: 0.85; }
.track { height: 0.5em; margin: 0.25em 0; border-radius: 0.25em; overflow: hidden; background: var(--job-progress-track, color-mix(in srgb, currentColor 18%, transparent)); }
.bar { height: 100%; background: var(--job-progress-bar, currentColor); transition: width 0.3s; }
.quiet { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (prefers-reduced-motion: reduce) { .bar { transition: none; } }
@media (forced-colors: active) { .track { border: 1px solid CanvasText; } .bar { background: Highlight; forced-color-adjust: none; } }
`;

const POLL_MS = 5_000;
const TELL_MS = 10_000;
const ENDED = new Set(["done", "dead", "cancelled"]);

// Imported on a server, where there is no such thing, it does nothing.
const Base =
  (globalThis as { HTMLElement?: typeof HTMLElement }).HTMLElement ?? (Object as unknown as typeof HTMLElement);

/** `<job-progress>`: how far one job or one batch is, for the end users of an app. */
export class JobProgress extends Base {
  static readonly observedAttributes = ["src", "texts", "lang"];

  #texts: Partial<JobProgressTexts> = {};
  #view: JobProgressView | null = null;
  #state: "loading" | "seen" | "away" | "gone" = "loading";
  #events: EventSource | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #told = "";
  #toldAt = 0;
  readonly #onVisible = (): void => this.#connect();

  get src(): string {
    return this.getAttribute("src") ?? "";
  }
  set src(value: string) {
    this.setAttribute("src", value);
  }

  /** Those that are not given are in English. */
  get texts(): Partial<JobProgressTexts> {
    return this.#texts;
  }
  set texts(value: Partial<JobProgressTexts>) {
    this.#texts = value;
    this.#render();
  }

  /** What was last seen. */
  get view(): JobProgressView | null {
    return this.#view;
  }

  connectedCallback(): void {
    if (!this.shadowRoot) this.#build();
    document.addEventListener("visibilitychange", this.#onVisible);
    this.#connect();
  }

  disconnectedCallback(): void {
    document.removeEventListener("visibilitychange", this.#onVisible);
    this.#close();
  }

  attributeChangedCallback(name: string): void {
    if (name === "texts") {
      try {
        this.#texts = JSON.parse(this.getAttribute("texts") ?? "{}") as Partial<JobProgressTexts>;
      } catch {
        this.#texts = {};
      }
    }
    if (name === "src") {
      this.#view = null;
      this.#state = "loading";
      if (this.isConnected) this.#connect();
    }
    this.#render();
  }

  #close(): void {
    this.#events?.close();
    this.#events = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #connect(): void {
    this.#close();
    if (this.src === "" || document.hidden || this.#isOver()) return;
    const events = new EventSource(`${this.src}/events`);
    this.#events = events;
    events.addEventListener("view", (event) => {
      if (this.#events === events) this.#see(JSON.parse((event as MessageEvent<string>).data) as JobProgressView);
    });
    events.addEventListener("error", () => {
      if (this.#events !== events) return;
      // It may be gone, or streams may not get through here: asking tells which.
      this.#close();
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    const { src } = this;
    try {
      const response = await fetch(src, { cache: "no-store", credentials: "omit" });
      if (src !== this.src) return;
      if (response.status === 404) {
        this.#state = "gone";
        return this.#render();
      }
      if (!response.ok) throw new Error(String(response.status));
      this.#see((await response.json()) as JobProgressView);
    } catch {
      if (src !== this.src) return;
      this.#state = "away";
      this.#render();
    }
    if (this.isConnected && !this.#isOver()) this.#timer = setTimeout(() => this.#connect(), POLL_MS);
  }

  #isOver(): boolean {
    return this.#state === "gone" || (this.#state === "seen" && ENDED.has(this.#view?.status ?? ""));
  }

  #see(view: JobProgressView): void {
    this.#view = view;
    this.#state = "seen";
    this.#render();
    this.dispatchEvent(new CustomEvent("progress", { detail: view }));
    if (!this.#isOver()) return;
    this.#close();
    this.dispatchEvent(new CustomEvent("end", { detail: view }));
  }

  #text(name: keyof JobProgressTexts, values: Record<string, string> = {}): string {
    const text = this.#texts[name] ?? TEXTS[name];
    return text.replace(/\{(\w+)\}/g, (_, key: string) => values[key] ?? "");
  }

  #number(value: number): string {
    return value.toLocaleString(this.#lang());
  }

  /** Undefined: the browser's. */
  #lang(): string | undefined {
    return this.closest("[lang]")?.getAttribute("lang") || undefined;
  }

  #status(): [icon: string, words: string] {
    const view = this.#view;
    if (this.#state !== "seen" || !view) return [ICONS[this.#state] ?? "", this.#text(this.#state as "loading")];
    const { status, attempt, errors } = view;
    const icon = ICONS[status] ?? "";
    if (status === "retrying") {
      const n = attempt ?? 1;
      const tries = n === 1 ? this.#text("oneTry") : this.#text("tries", { n: this.#number(n) });
      return [icon, this.#text("retrying", { tries })];
    }
    if (status === "done" && errors) return ["!", this.#text("doneWithErrors", { n: this.#number(errors) })];
    return [icon, status in TEXTS ? this.#text(status as "done") : status];
  }

  #detail(): string {
    const view = this.#state === "seen" ? this.#view : null;
    if (!view) return "";
    const parts: string[] = [];
    const isOver = ENDED.has(view.status);
    if (view.done !== null && view.total !== null && !(isOver && view.what === "job")) {
      parts.push(this.#text("of", { done: this.#number(view.done), total: this.#number(view.total) }));
    }
    if (view.note && !isOver) parts.push(view.note);
    if (view.errors && !isOver) parts.push(this.#text("failed", { n: this.#number(view.errors) }));
    if (view.etaMs !== null && !isOver) parts.push(this.#text("left", { time: this.#span(view.etaMs) }));
    if (view.nextAt !== null) {
      const time = new Date(view.nextAt).toLocaleTimeString(this.#lang(), { hour: "2-digit", minute: "2-digit" });
      parts.push(this.#text(view.status === "retrying" ? "next" : "starts", { time }));
    }
    return parts.join(" · ");
  }

  #span(ms: number): string {
    const [value, unit] =
      ms < 90_000 ? [ms / 1_000, "second"] : ms < 5_400_000 ? [ms / 60_000, "minute"] : [ms / 3_600_000, "hour"];
    const rounded = Math.max(1, Math.round(value));
    return rounded.toLocaleString(this.#lang(), { style: "unit", unit, unitDisplay: "long" });
  }

  #build(): void {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = `<div class="line"><span class="status" part="status"><span class="icon" aria-hidden="true"></span> <span class="words"></span></span><span class="detail" part="detail"></span></div><div class="track" part="track" role="progressbar" hidden><div class="bar" part="bar"></div></div><span class="quiet" role="status" aria-live="polite"></span>`;
    // A sheet, not a style element: a page's policy may forbid those.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    this.#render();
  }

  #render(): void {
    const root = this.shadowRoot;
    if (!root) return;
    const find = (name: string): HTMLElement => root.querySelector<HTMLElement>(`.${name}`)!;
    const [icon, words] = this.#status();
    const detail = this.#detail();
    find("icon").textContent = icon;
    find("words").textContent = words;
    find("detail").textContent = detail;
    const { done = null, total = null, status = "" } = this.#view ?? {};
    const track = find("track");
    track.hidden = done === null || total === null || total === 0 || this.#state !== "seen" || status === "cancelled";
    if (!track.hidden) {
      const part = Math.max(0, Math.min(1, done! / total!));
      find("bar").style.width = `${100 * part}%`;
      track.setAttribute("aria-valuemin", "0");
      track.setAttribute("aria-valuemax", String(total));
      track.setAttribute("aria-valuenow", String(done));
      track.setAttribute("aria-valuetext", detail);
      track.setAttribute("aria-label", words);
    }
    // Another word is news at once; more of the same only now and then.
    if (words === this.#told && Date.now() - this.#toldAt < TELL_MS) return;
    this.#told = words;
    this.#toldAt = Date.now();
    find("quiet").textContent = detail === "" ? words : `${words}. ${detail}`;
  }
}

const registry = (globalThis as { customElements?: CustomElementRegistry }).customElements;
if (registry && !registry.get("job-progress")) registry.define("job-progress", JobProgress);

declare global {
  interface HTMLElementTagNameMap {
    "job-progress": JobProgress;
  }
}
