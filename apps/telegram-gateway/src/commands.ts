// holdfast telegram set-webhook | delete-webhook | info: says to Telegram where its updates go.
import type { AppCommand, AppCommandContext } from "holdfast";
import { OptionInvalid } from "holdfast";
import { makeApi } from "./api.ts";
import { DEFAULT_API_ROOT } from "./config/check.ts";
import { type Bot, type Gateway, handlerName } from "./config/bot.ts";

export function makeCommands(gateway: Gateway): AppCommand[] {
  return [
    {
      name: "telegram set-webhook",
      summary: "tell Telegram to send the bots' updates here",
      arguments: ["[bots...]"],
      options: [
        ["--url <url>", "where Telegram reaches this server; otherwise TELEGRAM_PUBLIC_URL"],
        ["--drop-pending", "forget the updates that wait at Telegram"],
      ],
      run: (context) =>
        forEach(gateway, context, async (bot, api) => {
          const url = `${publicUrl(gateway, context.options["url"])}/telegram/${bot.slug}`;
          await api.setWebhook(url, {
            secret_token: bot.secret,
            drop_pending_updates: context.options["dropPending"] === true,
          });
          return `updates go to ${url}`;
        }),
    },
    {
      name: "telegram delete-webhook",
      summary: "tell Telegram to send the bots' updates nowhere",
      arguments: ["[bots...]"],
      options: [["--drop-pending", "forget the updates that wait at Telegram"]],
      run: (context) =>
        forEach(gateway, context, async (_, api) => {
          await api.deleteWebhook({ drop_pending_updates: context.options["dropPending"] === true });
          return "updates go nowhere";
        }),
    },
    {
      name: "telegram info",
      summary: "what Telegram knows about the bots and their webhooks",
      arguments: ["[bots...]"],
      run: (context) =>
        forEach(gateway, context, async (bot, api) => {
          const [me, hook] = await Promise.all([api.getMe(), api.getWebhookInfo()]);
          const trouble = hook.last_error_message === undefined ? "" : `; last error: ${hook.last_error_message}`;
          const where = hook.url === undefined || hook.url === "" ? "no webhook" : hook.url;
          return `@${me.username}, ${handlerName(bot)}, ${where}, ${hook.pending_update_count} waiting${trouble}`;
        }),
    },
  ];
}

/** The named bots, or all; every one is tried, and the exit code says whether one failed. */
async function forEach(
  gateway: Gateway,
  { args, print, note }: AppCommandContext,
  run: (bot: Bot, api: ReturnType<typeof makeApi>) => Promise<string>,
): Promise<number> {
  if (gateway.isSample) {
    throw new OptionInvalid("There are no bots but the samples.", "Set TELEGRAM_BOTS to the path of your bots' file.");
  }
  const unknown = args.find((slug) => !gateway.bots.has(slug));
  if (unknown !== undefined) {
    const known = [...gateway.bots.keys()].join(", ");
    throw new OptionInvalid(`There is no bot "${unknown}".`, `There are ${known}.`);
  }
  let failed = 0;
  for (const bot of gateway.bots.values()) {
    if (args.length > 0 && !args.includes(bot.slug)) continue;
    try {
      print(`${bot.slug}: ${await run(bot, makeApi(bot, gateway.apiRoot))}`);
    } catch (error) {
      if (error instanceof OptionInvalid) throw error;
      failed += 1;
      note(`${bot.slug}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return failed === 0 ? 0 : 1;
}

function publicUrl({ publicUrl: configured, apiRoot }: Gateway, asked: unknown): string {
  const url = typeof asked === "string" ? asked : configured;
  if (url === undefined || !URL.canParse(url)) {
    throw new OptionInvalid(
      url === undefined ? "Nobody said where Telegram reaches this server." : `${url} is not an address.`,
      "Give --url https://bots.example.com, or set TELEGRAM_PUBLIC_URL.",
    );
  }
  if (apiRoot === DEFAULT_API_ROOT && !url.startsWith("https://")) {
    throw new OptionInvalid(`${url} is not https.`, "Telegram delivers to https only.");
  }
  return url.replace(/\/+$/, "");
}
