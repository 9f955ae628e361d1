// The app: bots behind a durable queue. `telegramGateway()` takes options, the path of a YAML file, or nothing.
import { type App, type AppStart, defineApp, type Holdfast, migrationsFrom, OptionInvalid } from "holdfast";
import type { Api } from "grammy";
import { makeApi } from "./api.ts";
import { makeCommands } from "./commands.ts";
import type { Gateway, GatewayOptions } from "./config/bot.ts";
import { type Environment, readGateway } from "./config/read.ts";
import { makeCounts } from "./counts.ts";
import { makeForget } from "./forget.ts";
import { makeNotice } from "./notice.ts";
import { makePageRoutes, type PageDesk } from "./page-routes.ts";
import { makeUpdateKind } from "./run-update.ts";
import { makeSender } from "./send.ts";
import { makeSessions } from "./sessions.ts";
import { StandIn } from "./stand-in.ts";
import { makeWebhook } from "./webhook.ts";

interface Desk extends PageDesk {
  apiRoot: string;
  apis: Map<string, Api>;
}

export function telegramGateway(options?: GatewayOptions | string, env: Environment = process.env): App {
  const gateway = readGateway(options, env);
  const desks = new WeakMap<Holdfast, Desk>();
  const deskOf = (hf: Holdfast): Desk => {
    const known = desks.get(hf);
    if (known) return known;
    const made = makeDesk(hf, gateway);
    desks.set(hf, made);
    return made;
  };
  return defineApp({
    name: "telegram-gateway",
    migrations: migrationsFrom(new URL("../migrations/", import.meta.url)),
    jobs(hf) {
      const { kinds, send } = deskOf(hf);
      return [...kinds.values(), send, makeNotice(hf, gateway.texts, send)];
    },
    chores: (hf) => [makeForget(hf, gateway.keepMs)],
    routes: [makeWebhook(deskOf), ...makePageRoutes(deskOf)],
    commands: makeCommands(gateway),
    page: { title: "Telegram gateway", folder: new URL("../page/", import.meta.url) },
    start: (context) => start(deskOf(context.hf), context),
  });
}

function makeDesk(hf: Holdfast, gateway: Gateway): Desk {
  const desk: Desk = {
    hf,
    gateway,
    apiRoot: gateway.apiRoot,
    apis: new Map(),
    kinds: new Map(),
    send: makeSender({ hf, apiOf }),
    sessions: makeSessions(hf, gateway.authSecret, gateway.sessionTtlMs),
    counts: makeCounts(hf),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    isOpen: !gateway.isSample,
    standIn: undefined,
  };
  const { texts } = gateway;
  const async = [...gateway.bots.values()].filter((bot) => bot.isAsync);
  desk.kinds = new Map(async.map((bot) => [bot.slug, makeUpdateKind({ hf, bot, texts, send: desk.send })]));
  return desk;

  function apiOf(slug: string): Api | undefined {
    const bot = gateway.bots.get(slug);
    if (!bot) return undefined;
    const known = desk.apis.get(slug);
    if (known) return known;
    const made = makeApi(bot, desk.apiRoot);
    desk.apis.set(slug, made);
    return made;
  }
}

async function start(desk: Desk, { hf, mode, url, log }: AppStart): Promise<() => Promise<void>> {
  const { gateway, counts } = desk;
  desk.log = log;
  refuseForgetful(gateway, hf, mode);
  if (gateway.isSample && mode === "dev" && url !== undefined) await openStandIn(desk, url);
  if (gateway.isSample && !desk.isOpen) {
    log.warn("The Telegram gateway has no bots. Set TELEGRAM_BOTS to the path of a file that lists them.");
  }
  counts.start((error) => log.warn("The gateway's counts are not written yet", { error: String(error) }));
  return async () => {
    // What cannot be counted is no reason not to stop.
    await counts.stop().catch(() => {});
    await desk.standIn?.close();
  };
}

/** An async bot says 200 because the update is safe; in a database that ends with its process it is not. */
function refuseForgetful({ bots }: Gateway, { isInMemory }: Holdfast, mode: AppStart["mode"]): void {
  const async = [...bots.values()].find((bot) => bot.isAsync);
  if (!isInMemory || mode === "program" || !async) return;
  throw new OptionInvalid(
    `The bot "${async.slug}" is async, and there is no database that keeps its updates.`,
    "Set DATABASE_URL, or leave the database out for the embedded one.",
  );
}

/** The sample bots, for a newcomer without a network: the stand-in is what they know as Telegram. */
async function openStandIn(desk: Desk, url: string): Promise<void> {
  const bots = [...desk.gateway.bots.values()];
  desk.standIn = await StandIn.start({ tokens: bots.map((bot) => bot.token) });
  desk.apiRoot = desk.standIn.url;
  desk.apis.clear();
  desk.isOpen = true;
  for (const bot of bots) {
    const api = makeApi(bot, desk.apiRoot);
    await api.setWebhook(`${url}/telegram/${bot.slug}`, { secret_token: bot.secret });
  }
}
