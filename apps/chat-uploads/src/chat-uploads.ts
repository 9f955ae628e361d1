// The app: files that people drop into a chat, and workspaces that receive them. `chatUploads()` takes options, or nothing.
import { type App, type AppStart, defineApp, type Holdfast, migrationsFrom } from "holdfast";
import { makeAnnouncements } from "./announcements.ts";
import { makeCommands } from "./commands.ts";
import type { Desk } from "./desk.ts";
import { makeForget } from "./forget.ts";
import { limitsRoute } from "./limits.ts";
import { type ChatUploadsOptions, readOptions, type Settings } from "./options.ts";
import { makePush } from "./push.ts";
import { makeChatRoutes } from "./routes/chat.ts";
import { makeInboxRoute } from "./routes/inbox.ts";
import { makePendingUploadRoutes } from "./routes/pending-uploads.ts";
import { makeUploadRoute } from "./routes/upload.ts";
import { makeWorkspaceRoutes } from "./routes/workspaces.ts";
import { openSample } from "./sample.ts";

/** `holdfast dev`: a newcomer does not wait for five minutes to see that nobody comes. */
const DEV_OFFLINE_AFTER_MS = 15_000;

export function chatUploads(options: ChatUploadsOptions = {}): App {
  const settings = readOptions(options);
  const desks = new WeakMap<Holdfast, Desk>();
  const deskOf = (hf: Holdfast): Desk => {
    const known = desks.get(hf);
    if (known) return known;
    const made = makeDesk(hf, settings);
    desks.set(hf, made);
    return made;
  };
  return defineApp({
    name: "chat-uploads",
    migrations: migrationsFrom(new URL("../migrations/", import.meta.url)),
    jobs: (hf) => [deskOf(hf).push],
    chores: (hf) => [makeForget(hf, settings.keepMs)],
    routes: [
      limitsRoute,
      makeUploadRoute(deskOf),
      ...makePendingUploadRoutes(deskOf),
      makeInboxRoute(deskOf),
      ...makeChatRoutes(deskOf),
      ...makeWorkspaceRoutes(deskOf),
    ],
    commands: makeCommands(),
    page: { title: "Chat uploads", folder: new URL("../page/", import.meta.url) },
    start: (context) => start(deskOf(context.hf), context, options.offlineAfter !== undefined),
  });
}

function makeDesk(hf: Holdfast, settings: Settings): Desk {
  const desk: Desk = {
    hf,
    settings,
    announcements: makeAnnouncements({
      onAnnounced: settings.onAnnounced,
      onFault: (error) => desk.log.error("onAnnounced of chatUploads() failed", { error: String(error) }),
    }),
    push: makePush(hf, settings.post),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    sample: undefined,
    offlineAfterMs: settings.offlineAfterMs,
  };
  return desk;
}

async function start(desk: Desk, { mode, url, log }: AppStart, isSaid: boolean): Promise<() => Promise<void>> {
  desk.log = log;
  if (mode === "dev" && url !== undefined) {
    if (!isSaid) desk.offlineAfterMs = DEV_OFFLINE_AFTER_MS;
    desk.sample = await openSample(desk.hf, url, log);
  }
  return async () => {
    // Who waits for news is answered, so that the server can close.
    desk.announcements.close();
    await desk.sample?.be("stopped");
  };
}
