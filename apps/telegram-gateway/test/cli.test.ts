// The gateway through the real command line: webhooks set and removed, the samples of `holdfast dev`, refusals at start.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cleanUp, makeFolder, run, start } from "../../../test/cli/holdfast.ts";
import type { AppCommandContext } from "holdfast";
import { StandIn, telegramGateway } from "../src/index.ts";
import { bot, SECRET, TOKEN } from "./scene.ts";

const source = fileURLToPath(new URL("../src/index.ts", import.meta.url));
let cwd: string;
let standIn: StandIn;
beforeAll(async () => {
  cwd = await makeFolder();
  standIn = await StandIn.start({ tokens: [TOKEN] });
  await writeFile(
    join(cwd, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { telegramGateway } from ${JSON.stringify(source)};
     export default defineConfig({ apps: [telegramGateway()] });`,
  );
  await writeFile(
    join(cwd, "telegram.yaml"),
    `bots:
  shop: { token: "\${SHOP_TOKEN}", secret: ${SECRET}, handler: echo, async: true, requireAuth: false }
`,
  );
});
afterAll(async () => {
  await cleanUp();
  await standIn.close();
});
const env = () => ({ TELEGRAM_API_ROOT: standIn.url, SHOP_TOKEN: TOKEN, HOLDFAST_PORT: "0" });

test("set-webhook, info", async () => {
  const set = await run(["telegram", "set-webhook", "--url", "https://bots.example.com/"], { cwd, env: env() });
  expect(set, set.stderr).toMatchObject({
    code: 0,
    stdout: "shop: updates go to https://bots.example.com/telegram/shop\n",
  });
  expect(standIn.webhooks.get(TOKEN)).toEqual({ url: "https://bots.example.com/telegram/shop", secret: SECRET });
  const info = await run(["telegram", "info", "shop"], { cwd, env: env() });
  expect(info.stdout).toContain("@bot_12345, echo, https://bots.example.com/telegram/shop, 0 waiting");
});

test("delete-webhook, and what the commands refuse", async () => {
  const command = async (name: string, args: string[], options: object = {}, more: object = {}) => {
    const bots = { shop: bot({ handler: "echo" }) };
    const { commands = [] } = telegramGateway({ bots, apiRoot: standIn.url, ...more }, {});
    const said: string[] = [];
    const say = (text: string) => void said.push(text);
    const context = { args, options, print: say, note: say } as unknown as AppCommandContext;
    const code = await commands.find((entry) => entry.name === `telegram ${name}`)!.run(context);
    return { code, said };
  };
  expect(await command("delete-webhook", [])).toEqual({ code: 0, said: ["shop: updates go nowhere"] });
  expect(standIn.webhooks.size).toBe(0);
  await expect(command("set-webhook", [])).rejects.toMatchObject({
    hint: expect.stringContaining("TELEGRAM_PUBLIC_URL"),
  });
  await expect(command("info", ["shoe"])).rejects.toThrow('There is no bot "shoe"');
  const toTelegram = command("set-webhook", [], { url: "http://here" }, { apiRoot: "https://api.telegram.org" });
  await expect(toTelegram).rejects.toThrow("is not https");
  const stranger = { bots: { shop: { ...bot({ handler: "echo" }), token: "12345:some-other-token" } } };
  const { code, said } = await command("info", [], {}, stranger);
  expect(code).toBe(1);
  expect(said.join()).toContain("Unauthorized");
  expect(said.join()).not.toContain("some-other-token");
});

test("an async bot without a database that keeps anything is refused at start; so is a missing variable", async () => {
  const memory = await run(["start"], { cwd, env: { ...env(), DATABASE_URL: "memory:" } });
  expect(memory.code).not.toBe(0);
  expect(memory.stderr).toContain("is async, and there is no database that keeps its updates");
  const unset = await run(["start"], { cwd, env: { ...env(), SHOP_TOKEN: "" } });
  expect(unset.code).not.toBe(0);
  expect(unset.stderr).toContain("SHOP_TOKEN, which is not set");
});

test("holdfast dev without bots: the samples and a stand-in; a typed message is handled, fails, is tried again", async () => {
  const folder = await makeFolder();
  await writeFile(
    join(folder, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { telegramGateway } from ${JSON.stringify(source)};
     export default defineConfig({ apps: [telegramGateway()] });`,
  );
  const server = await start(["dev"], { cwd: folder, env: { HOLDFAST_PORT: "0" } });
  const { url } = server.ready;
  const type = async (slug: string, text: string): Promise<unknown> => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ bot: slug, chat: 5, name: "Ada", text });
    return await (await fetch(`${url}/telegram-gateway/say`, { method: "POST", headers, body })).json();
  };
  type Said = { from: string; text: string; badge: { status: string; attempt: number } | null };
  const until = async (slug: string, holds: (messages: Said[]) => boolean): Promise<Said[]> => {
    const end = Date.now() + 20_000;
    for (;;) {
      const answer = await fetch(`${url}/telegram-gateway/chats/${slug}/5`);
      const { messages } = (await answer.json()) as { messages: Said[] };
      if (holds(messages)) return messages;
      if (Date.now() > end) throw new Error(JSON.stringify(messages));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const answered = (text: string) => (messages: Said[]) =>
    messages.some((said) => said.from === "bot" && said.text === text);
  expect(await type("echo", "hello")).toMatchObject({ status: 200, came: "handled", tries: 1 });
  await until("echo", answered("hello"));
  expect(await type("sum", "1 and 2 and 39")).toMatchObject({ came: "accepted" });
  await until("sum", answered("1 + 2 + 39 = 42"));
  expect(await type("flaky", "try")).toMatchObject({ came: "accepted" });
  await until("flaky", (messages) => messages.some(({ badge }) => badge?.status === "retrying"));
  await until("flaky", answered("It worked at try 3: try"));
  expect(await type("vault", "gold")).toMatchObject({ came: "refused" });
  expect(await type("door", "open sesame")).toMatchObject({ came: "handled" });
  expect(await type("vault", "gold")).toMatchObject({ came: "accepted" });
  await until("vault", answered("gold"));
  server.kill("SIGTERM");
  expect((await server.ended).code).toBe(0);
}, 60_000);
