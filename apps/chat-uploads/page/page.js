// The chat's page. Asks once a second while somebody looks, and changes only what has changed, so that neither the focus nor
// the place in a list is lost. Files go up as soon as they are dropped; a message mentions them when it is sent.
import { call, fill, headers, make, newId, onSignIn, watch } from "/apps/page.js";
import { bytes, moment, words } from "./words.js";

const PAUSE_MS = 1000;

const byId = (id) => document.getElementById(id);
/** @type {{ workspace: string | null, [more: string]: any }} */
const state = { workspace: null, offset: 0, limits: null, attached: [], sample: null, isSending: false, sent: null };

const now = () => new Date(Date.now() + state.offset);

function clock(at) {
  return make("time", { datetime: at, class: "soft" }, moment(at, now()));
}

function showWorkspaces(workspaces) {
  const shown = [workspaces, state.workspace];
  fill(byId("workspaces"), shown, () =>
    workspaces.length === 0
      ? [make("li", { class: "empty" }, "None yet.")]
      : workspaces.map(({ id, name, delivery_mode: mode, callback }) =>
          make(
            "li",
            {},
            make(
              "button",
              { "data-id": id, "aria-current": String(id === state.workspace), onclick: () => choose(id) },
              make("strong", {}, name),
              make("div", { class: "soft" }, mode === "poll" ? "polls" : `posted to ${callback ?? "nowhere yet"}`),
            ),
          ),
        ),
  );
}

function choose(id) {
  if (id === state.workspace) return;
  state.workspace = id;
  for (const file of state.attached) file.request?.abort();
  state.attached = [];
  showAttached();
  byId("note").textContent = "";
  void refresh();
}

function showChat({ workspace, messages }) {
  byId("chat-title").textContent = workspace.name;
  byId("presence").textContent = presence(workspace);
  const box = byId("transcript");
  // What a file's status says changes with the time, too.
  const at = now();
  const texts = messages.map((message) => [message, message.files.map((file) => words(file.status, at))]);
  const wasAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  const isNew = fill(box, [workspace.id, texts], () =>
    messages.length === 0
      ? [make("p", { class: "empty" }, "Nothing yet. Drop a file here, or write something.")]
      : messages.map(said),
  );
  if (isNew && wasAtEnd) box.scrollTop = box.scrollHeight;
}

function presence({ delivery_mode: mode, callback, isThere, polledAt, stuck }) {
  if (mode === "push") return callback ? `Files are posted to ${callback}.` : "It has no callback URL yet.";
  if (stuck) return `The workspace ${stuck}.`;
  if (polledAt === null) return "It has never polled.";
  return isThere ? "It polls." : `It has not polled since ${moment(polledAt, now())}.`;
}

function said({ author, text, at, files }) {
  return make(
    "div",
    { class: `said ${author}` },
    text === "" ? null : make("div", { class: "text" }, text),
    files.length === 0 ? null : make("ul", { class: "files" }, ...files.map(fileLine)),
    make("div", { class: "foot" }, clock(at)),
  );
}

function fileLine({ name, size, status }) {
  return make(
    "li",
    {},
    make("span", { class: "name" }, name),
    make("span", { class: "soft" }, bytes(size)),
    make("span", { class: `status ${status.code}` }, words(status, now())),
    status.error ? make("span", { class: "why" }, status.error) : null,
  );
}

function showSample(sample) {
  state.sample = sample;
  const isShown = sample !== null && sample.id === state.workspace;
  byId("sample").hidden = !isShown;
  byId("keep-part").hidden = sample === null;
  if (!isShown) return;
  for (const button of byId("sample").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.mood === sample.mood));
  }
}

// Attached files

function attach(files) {
  if (state.workspace === null) return;
  const { per_file_bytes: perFile = Infinity, max_attachments_per_message: most = 64 } = state.limits ?? {};
  for (const file of files) {
    const entry = { file, sent: 0, state: "waiting", error: null, uri: null, request: null };
    if (state.attached.length >= most) {
      byId("note").textContent = `A message takes ${most} files.`;
      break;
    }
    if (file.size > perFile) fail(entry, `has ${bytes(file.size)}; ${bytes(perFile)} are taken`);
    else if (file.size === 0) fail(entry, "is empty");
    state.attached.push(entry);
  }
  showAttached();
  void uploadNext();
}

function fail(entry, why) {
  entry.state = "failed";
  entry.error = why;
}

/** One after the other: each has the whole line. */
async function uploadNext() {
  if (state.attached.some((entry) => entry.state === "uploading")) return;
  const entry = state.attached.find(({ state: at }) => at === "waiting");
  if (!entry) return;
  entry.state = "uploading";
  showAttached();
  try {
    entry.uri = await upload(entry);
    entry.state = "ready";
  } catch (error) {
    fail(entry, error.message);
  }
  showAttached();
  void uploadNext();
}

/** Not fetch(): it says nothing about how far it is. */
function upload(entry) {
  const keep = byId("keep").value;
  const query = keep === "" ? "" : `?ttl=${keep}`;
  const request = new XMLHttpRequest();
  entry.request = request;
  return new Promise((resolve, reject) => {
    request.open("POST", `/workspaces/${state.workspace}/chat/uploads${query}`);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      entry.sent = total > 0 ? loaded / total : 0;
      showProgress(entry);
    });
    request.addEventListener("load", () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        // A proxy's page, perhaps.
      }
      if (request.status === 200) resolve(answer.files[0].uri);
      else reject(new Error(answer.error?.message ?? `the server answered ${request.status}`));
    });
    request.addEventListener("error", () => reject(new Error("the connection failed")));
    request.addEventListener("abort", () => reject(new Error("taken back")));
    const form = new FormData();
    form.append("files", entry.file);
    request.send(form);
  });
}

function showProgress(entry) {
  const bar = byId("attached").querySelector(`[data-n="${state.attached.indexOf(entry)}"] progress`);
  if (bar) bar.value = entry.sent;
}

const SAYS = { waiting: "waits", uploading: "uploading", ready: "uploaded", failed: "" };

function showAttached() {
  byId("attached").replaceChildren(
    ...state.attached.map((entry, index) =>
      make(
        "li",
        { "data-n": index, class: entry.state },
        make("span", { class: "name" }, entry.file.name),
        make("span", { class: "soft" }, bytes(entry.file.size)),
        entry.state === "uploading"
          ? make("progress", { max: 1, value: entry.sent, "aria-label": `Upload of ${entry.file.name}` })
          : null,
        make("span", { class: entry.state === "failed" ? "why" : "soft" }, entry.error ?? SAYS[entry.state]),
        make(
          "button",
          { type: "button", "aria-label": `Remove ${entry.file.name}`, onclick: () => remove(entry) },
          "✕",
        ),
      ),
    ),
  );
  showSend();
}

function showSend() {
  const isBusy = state.attached.some(({ state: at }) => at === "waiting" || at === "uploading");
  byId("send").disabled = isBusy || state.isSending || state.workspace === null;
}

function remove(entry) {
  entry.request?.abort();
  state.attached = state.attached.filter((other) => other !== entry);
  showAttached();
  byId("text").focus();
}

/** What is sent again as it was is the same message: the answer to the first time may have been lost. */
async function send() {
  const { workspace, attached } = state;
  const files = attached.filter((entry) => entry.uri !== null).map(({ uri }) => uri);
  const text = byId("text").value;
  if (text.trim() === "" && files.length === 0) return;
  const what = JSON.stringify([workspace, text, files]);
  state.sent = { id: state.sent?.what === what ? state.sent.id : newId(), what, text, attached: [...attached] };
  state.isSending = true;
  showSend();
  try {
    await call("POST", `/workspaces/${workspace}/chat/messages`, { id: state.sent.id, text, files });
    arrived();
  } catch (error) {
    byId("note").textContent = error.message;
  }
  state.isSending = false;
  showAttached();
  await refresh();
}

/** Takes away what was sent, and leaves what was written and attached meanwhile. */
function arrived() {
  const { text, attached } = state.sent;
  const input = byId("text");
  if (input.value.startsWith(text)) input.value = input.value.slice(text.length).trimStart();
  state.attached = state.attached.filter((entry) => !attached.includes(entry));
  state.sent = null;
  byId("note").textContent = "";
}

// What is there

async function look() {
  try {
    state.limits ??= await call("GET", "/uploads/limits");
    const { workspaces, sample } = await call("GET", "/workspaces");
    state.workspace ??= sample?.id ?? workspaces[0]?.id ?? null;
    // Before the transcript is filled: what is not shown cannot be scrolled.
    byId("typing").hidden = state.workspace === null;
    byId("main").hidden = false;
    showWorkspaces(workspaces);
    showSample(sample);
    if (state.workspace !== null) {
      const chat = await call("GET", `/workspaces/${state.workspace}/chat`);
      state.offset = Date.parse(chat.now) - Date.now();
      showChat(chat);
      // Only its answer was lost.
      if (!state.isSending && chat.messages.some(({ id }) => id === state.sent?.id)) {
        arrived();
        showAttached();
      }
    }
    byId("live").textContent = sample
      ? "A sample workspace on this machine. Drop a file, then start it."
      : `${workspaces.length} ${workspaces.length === 1 ? "workspace" : "workspaces"}`;
    showSend();
  } catch (error) {
    byId("live").textContent = error.message;
  }
}

byId("typing").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!byId("send").disabled) void send();
});
byId("files").addEventListener("change", () => {
  attach(byId("files").files);
  byId("files").value = "";
});
byId("text").addEventListener("paste", (event) => {
  if (event.clipboardData.files.length > 0) attach(event.clipboardData.files);
});

// The counter: leaving a child of the page is not leaving the page.
let inside = 0;
const isFiles = (event) => event.dataTransfer?.types.includes("Files");
for (const [name, step] of [
  ["dragenter", 1],
  ["dragleave", -1],
]) {
  document.addEventListener(name, (event) => {
    if (!isFiles(event)) return;
    inside += step;
    byId("drop").hidden = inside <= 0;
  });
}
document.addEventListener("dragover", (event) => {
  if (isFiles(event)) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  if (!isFiles(event)) return;
  event.preventDefault();
  inside = 0;
  byId("drop").hidden = true;
  attach(event.dataTransfer.files);
});

for (const button of byId("sample").querySelectorAll("button")) {
  button.addEventListener("click", () => void beIn(button.dataset.mood));
}
async function beIn(mood) {
  try {
    showSample(await call("POST", `/workspaces/${state.sample.id}/sample`, { mood }));
  } catch (error) {
    byId("note").textContent = error.message;
  }
  await refresh();
}

byId("adding").addEventListener("submit", (event) => {
  event.preventDefault();
  void add();
});
async function add() {
  try {
    const added = await call("POST", "/workspaces", { name: byId("name").value, delivery_mode: "poll" });
    byId("name").value = "";
    byId("added").replaceChildren(
      make("p", {}, "Run this on its machine. The token is shown once."),
      make(
        "code",
        {},
        `HOLDFAST_URL=${location.origin} HOLDFAST_TOKEN=${added.token} npx holdfast workspace pull ${added.id}`,
      ),
    );
    choose(added.id);
  } catch (error) {
    byId("added").textContent = error.message;
  }
}

const refresh = watch(look, PAUSE_MS);
onSignIn(refresh);
