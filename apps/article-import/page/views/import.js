// One import: how it stands, what can be done, and every link of it.
import { fill, make, Refused } from "/apps/page.js";
import { call } from "../api.js";
import { fillList } from "../dom.js";
import { makeTurns } from "../turns.js";
import { dateText, nameOf, problem, t, timeLeft } from "../words.js";
import { bar, counters, ORDER } from "./bar.js";

export function importView(main, { place, vault, device, say }) {
  const id = place[1];
  const heading = make("h1", { tabindex: "-1" }, t("loading"));
  const head = make("div", { class: "row" });
  const actions = make("div", { class: "actions" });
  const progress = make("div", { class: "card progress" });
  const list = make("ul", { class: "cards items" });
  const more = make("button", { hidden: true, onclick: () => void showMore() }, t("more"));
  const choice = make(
    "select",
    { id: "state", onchange: () => ((pages = 1), void refresh()) },
    ["", ...ORDER].map((state) =>
      make("option", { value: state }, state === "" ? t("allStates") : t(`badges.${state}`)),
    ),
  );
  const turn = makeTurns();
  let pages = 1;
  main.replaceChildren(
    heading,
    head,
    progress,
    actions,
    make("p", { class: "choice" }, make("label", { for: "state" }, t("stateLabel")), choice),
    list,
    more,
  );

  async function showMore() {
    pages += 1;
    await refresh();
  }

  async function act(path, method = "POST") {
    try {
      const answer = await call(method, `/imports/${id}${path}`, method === "POST" ? {} : undefined);
      if (answer.retried !== undefined) say(t("retried", { count: answer.retried }));
    } catch (error) {
      say(problem(error));
    }
    await refresh();
  }

  async function remove(isActive) {
    if (!confirm(t(isActive ? "sureCancel" : "sureDelete"))) return;
    if (isActive) return await act("/cancel");
    try {
      await call("DELETE", `/imports/${id}`);
      if (heading.isConnected) location.hash = "#/";
    } catch (error) {
      say(problem(error));
    }
  }

  async function refresh() {
    const isNews = turn();
    const state = choice.value;
    let one;
    try {
      one = await call("GET", `/imports/${id}`);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      if (!isNews()) return;
      main.replaceChildren(
        make("h1", { tabindex: "-1" }, t("gone")),
        make("p", {}, make("a", { href: "#/" }, t("imports"))),
      );
      return;
    }
    const items = [];
    let next = null;
    for (let page = 0; page < pages; page += 1) {
      const query = new URLSearchParams({ state, ...(next ? { cursor: next } : {}) });
      const answer = await call("GET", `/imports/${id}/items?${query}`);
      items.push(...answer.items);
      next = answer.next;
      if (next === null) break;
    }
    const here = await titles(items);
    // Of links in a state that is not the chosen one any more there is no news either.
    if (state !== choice.value || !isNews()) return;
    if (heading.textContent !== nameOf(one)) heading.textContent = nameOf(one);
    fill(head, [one.state, one.createdAt], () => [
      make("span", { class: `badge ${one.state}`, id: "import-state" }, t(`states.${one.state}`)),
      make("time", { class: "soft", datetime: one.createdAt }, dateText(one.createdAt)),
    ]);
    fill(progress, [one.counts, one.ended, pace(one)], () => [
      bar(one),
      make("p", { class: "pace" }, [t("progress", one), pace(one)].filter(Boolean).join(" · ")),
      counters(one),
    ]);
    fill(actions, [one.state, one.counts.error], () => buttons(one));
    fillList(
      list,
      items.map((item) => ({ ...item, here: here.get(item.seq) ?? null })),
      (item) => item.seq,
      row,
    );
    more.hidden = next === null;
  }

  /** Titles are known only where the article is. */
  async function titles(items) {
    const kept = items.filter(({ state }) => state === "saved" || state === "consent-wall");
    const read = kept.map(async ({ seq }) => [seq, (await vault?.summary(`${id}:${seq}`))?.title]);
    return new Map(await Promise.all(read));
  }

  function buttons({ state, counts }) {
    const isActive = state === "queued" || state === "running" || state === "paused";
    return [
      (state === "queued" || state === "running") && button("pause", t("pause"), () => act("/pause")),
      state === "paused" && button("resume", t("resume"), () => act("/resume")),
      state !== "cancelled" &&
        counts.error > 0 &&
        button("retry-failed", t("retryFailed", { count: counts.error }), () => act("/retry-failed")),
      isActive ? button("cancel", t("cancel"), () => remove(true)) : button("delete", t("delete"), () => remove(false)),
    ];
  }

  function row(item) {
    const { seq, url, state, error, here, attempt, bounces } = item;
    const isRetrying = state === "pending" && error !== null && attempt > 0;
    const isKept = state === "saved" || state === "consent-wall";
    const title = here ?? item.title;
    const open = make(
      "a",
      {
        class: title ? null : "name",
        href: url,
        target: "_blank",
        rel: "noreferrer noopener",
        "data-id": `open ${seq}`,
        "aria-label": `${t("openPage")}: ${url}`,
      },
      shortUrl(url),
    );
    const name = here
      ? make("a", { class: "name", href: `#/read/${id}:${seq}`, "data-id": `read ${seq}` }, here)
      : make("span", { class: "name" }, title ?? "");
    return [
      make(
        "div",
        { class: "row" },
        make(
          "span",
          { class: `badge ${isRetrying ? "retrying" : state}` },
          isRetrying ? t("badges.retrying", { attempt }) : t(`badges.${state}`),
        ),
        title ? name : open,
        isKept && !here && item.device !== device && make("span", { class: "soft" }, t("elsewhere")),
        state === "error" &&
          button(`retry ${seq}`, t("retry"), () => act(`/items/${seq}/retry`), `${t("retry")}: ${shortUrl(url)}`),
      ),
      title && make("div", { class: "row small" }, open),
      error &&
        (state === "error" || isRetrying) &&
        make("p", { class: "why" }, problem(error), item.nextAt ? ` ${until(item.nextAt)}` : ""),
      state === "consent-wall" && make("p", { class: "hint" }, t("consentHint")),
      bounces > 0 && make("p", { class: "soft" }, t("bounced", { count: bounces })),
    ];
  }

  return { refresh };
}

const until = (at) => {
  const ms = Date.parse(at) - Date.now();
  return ms > 1_000 ? t("nextIn", { time: timeLeft(ms) }) : "";
};

function pace({ state, rate, etaMs }) {
  if (state !== "running" || !rate) return "";
  const perMinute = (rate * 60).toFixed(rate * 60 < 10 ? 1 : 0);
  return [t("rate", { perMinute }), etaMs ? t("eta", { time: timeLeft(etaMs) }) : ""].filter(Boolean).join(" · ");
}

const button = (id, text, act, label) =>
  make("button", { type: "button", "data-id": id, "aria-label": label ?? null, onclick: () => void act() }, text);

function shortUrl(url) {
  const text = url.replace(/^https?:\/\//, "");
  return text.length > 90 ? `${text.slice(0, 90)} …` : text;
}
