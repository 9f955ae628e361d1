// The gateway's page. Asks once a second while somebody looks, and changes only what has changed, so that neither the
// focus nor the place in a list is lost.
import { call, fill, make, onSignIn, watch } from "/apps/page.js";

const CHAT = "telegram-gateway-chat";
const PAUSE_MS = 1000;

const byId = (id) => document.getElementById(id);
/** @type {{ bot: string | null, chat: string | null, [more: string]: any }} */
const state = { bot: null, chat: null, name: "You", canType: false, offset: 0 };

/** Your own chat with the bots of `holdfast dev`, the same in this browser tomorrow. */
function ownChat() {
  const known = Number(localStorage.getItem(CHAT));
  if (Number.isSafeInteger(known) && known > 0) return known;
  const made = 100_000 + Math.floor(Math.random() * 900_000_000);
  localStorage.setItem(CHAT, String(made));
  return made;
}

const times = (count) => (count === 1 ? "1 try" : `${count} tries`);

function words({ status, attempt, nextAt }) {
  if (status === "done") return attempt > 1 ? `done after ${times(attempt)}` : "done";
  if (status === "dead") return `dead after ${times(attempt)}`;
  if (status === "retrying") return `retrying (${times(attempt)})${nextAt ? ` ${until(nextAt)}` : ""}`;
  if (status === "refused") return "not signed in";
  return status;
}

function until(at) {
  const seconds = Math.round((Date.parse(at) - Date.now() - state.offset) / 1000);
  if (seconds <= 0) return "now";
  return seconds < 90 ? `in ${seconds} s` : `in ${Math.round(seconds / 60)} min`;
}

function badge(of) {
  return make("span", { class: `badge ${of.status}`, title: of.error ?? null }, words(of));
}

function clock(at) {
  const date = new Date(at);
  const day = new Date().toDateString() === date.toDateString() ? "" : `${date.toLocaleDateString()} `;
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return make("time", { datetime: at, class: "soft" }, day + time);
}

function choose(bot, chat) {
  if (bot === state.bot && chat === state.chat) return;
  Object.assign(state, { bot, chat });
  byId("note").textContent = "";
  void refresh();
}

function showBots(bots) {
  const shown = bots.map((bot) => [bot, bot.bot === state.bot]);
  fill(byId("bots"), shown, () =>
    bots.map((bot) =>
      make(
        "li",
        {},
        make(
          "button",
          {
            "data-id": bot.bot,
            "aria-current": String(bot.bot === state.bot),
            onclick: () => choose(bot.bot, state.canType ? String(ownChat()) : null),
          },
          make("strong", {}, bot.bot),
          make(
            "div",
            { class: "soft" },
            [bot.handler, bot.async ? "async" : "at once", bot.requireAuth ? "sign-in" : null]
              .filter(Boolean)
              .join(" · "),
          ),
          make("div", { class: "soft" }, counted(bot.counts)),
        ),
      ),
    ),
  );
}

function counted(counts) {
  const taken = (counts.accepted ?? 0) + (counts.handled ?? 0);
  const others = ["duplicate", "conflict", "dropped", "refused", "failed", "unavailable", "unstorable"]
    .filter((what) => counts[what])
    .map((what) => `${counts[what]} ${what}`);
  return [`${taken} taken`, ...others].join(", ");
}

function showUpdates(updates) {
  // The seconds in a badge change without news.
  const shown = updates.map((update) => [update, words(update)]);
  fill(byId("updates"), shown, () =>
    updates.length === 0
      ? [make("li", { class: "empty" }, "Nothing yet.")]
      : updates.map((update) =>
          make(
            "li",
            {},
            make(
              "button",
              { "data-id": `${update.bot}:${update.update}`, onclick: () => openChat(update) },
              make("div", { class: "row" }, make("strong", {}, update.bot), badge(update), clock(update.at)),
              make("div", { class: "row" }, make("span", { class: "text" }, short(update.text))),
              update.error ? make("div", { class: "why" }, update.error) : null,
              make("div", { class: "soft" }, `${update.user ?? "somebody"} · update ${update.update}`),
            ),
          ),
        ),
  );
}

/** Where the chat is not beside the list, it is brought into view. */
function openChat({ bot, chat }) {
  choose(bot, chat);
  byId("chat-part").scrollIntoView({ block: "nearest" });
}

const short = (text) => (text.length > 120 ? `${text.slice(0, 120)} …` : text);

function showChat(messages) {
  const box = byId("transcript");
  const shown = [state.bot, state.chat, ...messages.map((message) => [message, message.badge && words(message.badge)])];
  const wasAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  const isNew = fill(box, shown, () =>
    messages.length === 0
      ? [make("p", { class: "empty" }, state.canType ? "Write something below." : "Nothing was said here yet.")]
      : messages.map(said),
  );
  if (isNew && wasAtEnd) box.scrollTop = box.scrollHeight;
}

const PURPOSES = {
  slow: "it takes longer",
  "gave-up": "given up",
  failed: "failed",
  "sign-in": "sign-in",
  reply: null,
};

function said(message) {
  const { badge: of, update } = message;
  const foot = make("div", { class: "foot" }, clock(message.at));
  if (message.from === "bot") {
    const remarks = [PURPOSES[message.purpose], message.state === "sent" ? null : message.state]
      .filter(Boolean)
      .join(", ");
    if (remarks) foot.append(remarks);
    if (message.error) foot.append(make("span", { class: "why" }, message.error));
  } else if (of) {
    foot.append(badge(of));
    if (of.status === "dead") {
      foot.append(make("button", { "data-id": `retry ${of.job}`, onclick: () => retry(of.job) }, "Retry"));
    }
    if (state.canType) {
      foot.append(make("button", { "data-id": `again ${update}`, onclick: () => again(update) }, "Deliver again"));
    }
    if (of.error) foot.append(make("span", { class: "why" }, of.error));
  }
  return make("div", { class: `said ${message.from}` }, message.text, foot);
}

const CAME = {
  accepted: "Accepted: a job has it.",
  handled: "Handled at once.",
  duplicate: "Delivered again: it was known, and nothing ran.",
  conflict: "The same number with another content: the first one stays.",
  dropped: "Dropped: this user is not on the list.",
  refused: "Not signed in. Write the secret to the bot with the handler auth: “open sesame”.",
  failed: "The bot failed.",
};

async function act(run) {
  try {
    byId("note").textContent = (await run()) ?? "";
  } catch (error) {
    byId("note").textContent = error.message;
  }
  await refresh();
}

const tell = ({ came, status }) => CAME[came] ?? `The webhook answered ${status}.`;
const again = (update) => act(async () => tell(await call("POST", "/telegram-gateway/again", { update })));
const retry = (job) =>
  act(async () => {
    await call("POST", `/api/v1/jobs/${job}/retry`, {});
    return "It runs again, with all its tries.";
  });

async function look() {
  try {
    const overview = await call("GET", "/telegram-gateway/overview");
    state.offset = Date.parse(overview.now) - Date.now();
    state.canType = overview.canType;
    if (state.bot === null && overview.bots.length > 0) {
      const newest = overview.updates.find((update) => update.chat !== null);
      state.bot = state.canType || !newest ? overview.bots[0].bot : newest.bot;
      state.chat = state.canType ? String(ownChat()) : (newest?.chat ?? null);
    }
    showBots(overview.bots);
    showUpdates(overview.updates);
    byId("chat-title").textContent = state.chat === null ? `${state.bot}` : `${state.bot}, chat ${state.chat}`;
    byId("typing").hidden = !state.canType;
    const { messages } =
      state.chat === null
        ? { messages: [] }
        : await call("GET", `/telegram-gateway/chats/${encodeURIComponent(state.bot)}/${state.chat}`);
    showChat(messages);
    byId("main").hidden = false;
    byId("live").textContent = overview.isSample
      ? state.canType
        ? "Sample bots, with a stand-in for Telegram. Nothing leaves this machine."
        : "No bots: set TELEGRAM_BOTS to the path of a file that lists them."
      : `${overview.bots.length} bots`;
  } catch (error) {
    byId("live").textContent = error.message;
  }
}

byId("typing").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("text").value;
  byId("text").value = "";
  const chat = Number(state.chat);
  void act(async () =>
    tell(await call("POST", "/telegram-gateway/say", { bot: state.bot, chat, name: state.name, text })),
  );
});

const refresh = watch(look, PAUSE_MS);
onSignIn(refresh);
