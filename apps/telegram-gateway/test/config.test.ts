// The configuration: YAML and TypeScript, the environment's names, and what is refused at start.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readGateway } from "../src/config/read.ts";
import type { BotOptions, GatewayOptions } from "../src/index.ts";
import { bot, SECRET, TOKEN } from "./scene.ts";

const folder = await mkdtemp(join(tmpdir(), "telegram-gateway-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

const one = (options: Partial<BotOptions>, more: Partial<GatewayOptions> = {}): GatewayOptions => ({
  bots: { shop: { ...bot({ handler: "echo" }), ...options } },
  ...more,
});

test("a YAML file, with secrets from the environment", async () => {
  const path = join(folder, "bots.yaml");
  await writeFile(
    path,
    `bots:
  shop:
    token: \${SHOP_TOKEN}
    secret: \${SHOP_SECRET}
    handler: http
    async: true
    requireAuth: false
    http: { url: http://shop.internal:8080/telegram, timeout: 12s, headers: { x-from: gateway } }
  tools:
    token: "67890:another-token-of-a-bot"
    secret: ${SECRET}
    handler: script
    script: { command: [/bin/cat] }
    requireAuth: false
`,
  );
  const gateway = readGateway(path, { SHOP_TOKEN: TOKEN, SHOP_SECRET: SECRET });
  expect(gateway.bots.get("shop")).toMatchObject({
    token: TOKEN,
    secret: SECRET,
    isAsync: true,
    timeoutMs: 12_000,
    http: { headers: { "x-from": "gateway" } },
    ladder: ["30s", "2m", "10m", "1h"],
    attempts: 5,
  });
  expect(gateway.bots.get("tools")).toMatchObject({ isAsync: false, script: { timeoutMs: 20_000, maxOutput: 65_536 } });
  expect(() => readGateway(path, { SHOP_TOKEN: TOKEN })).toThrow("SHOP_SECRET, which is not set");
  expect(() => readGateway(undefined, { TELEGRAM_BOTS: join(folder, "none.yaml") })).toThrow("cannot be read");
  await writeFile(path, "bots: {");
  expect(() => readGateway(path, {})).toThrow("is not YAML");
});

test("the names in the environment, and that the configuration wins over them", () => {
  const env = {
    ALLOWED_USERS: "12, 34",
    AUTH_SECRET: "open sesame",
    AUTH_SESSION_TTL: "2h",
    TELEGRAM_API_ROOT: "http://127.0.0.1:8081/",
    QUEUE_DONE_RETENTION: "24h",
  };
  const gateway = readGateway(one({}), env);
  expect(gateway).toMatchObject({
    authSecret: "open sesame",
    sessionTtlMs: 7_200_000,
    apiRoot: "http://127.0.0.1:8081",
    keepMs: 86_400_000,
  });
  expect([...gateway.allowedUsers!]).toEqual([12, 34]);
  expect(readGateway(one({}, { keep: "1h" }), env).keepMs).toBe(3_600_000);
  expect(readGateway(one({}), {})).toMatchObject({
    allowedUsers: undefined,
    sessionTtlMs: 86_400_000,
    keepMs: 7 * 86_400_000,
    apiRoot: "https://api.telegram.org",
  });
});

test("the slash at the end of a bot's address stays: the address without it is another one", () => {
  const gateway = readGateway(one({ handler: "http", http: { url: "http://shop.internal/hook/?to=a/" } }), {});
  expect(gateway.bots.get("shop")!.http!.url.href).toBe("http://shop.internal/hook/?to=a/");
});

test("without a configuration there are the sample bots, each with a token of its own", () => {
  const [first, second] = [readGateway(undefined, {}), readGateway(undefined, {})];
  expect(first.isSample).toBe(true);
  expect(first.bots.get("echo")!.secret).not.toBe(second.bots.get("echo")!.secret);
});

describe("refused at start", () => {
  const http = { url: "http://127.0.0.1:1/" };
  const cases: [string, GatewayOptions, string][] = [
    ["no bots", { bots: {} }, "has no bots"],
    ["an unknown option", one({ tokn: "x" } as never), 'has "tokn"'],
    ["an unknown handler", one({ handler: "shell" as never }), 'the handler "shell"'],
    ["no token", one({ token: undefined as never }), "no token"],
    ["a token that is none", one({ token: "nonsense" }), "an unusable token"],
    ["a short secret", one({ secret: "fifteen-letters" }), "an unusable secret"],
    ["a secret that Telegram would not take", one({ secret: "sixteen letters!" }), "an unusable secret"],
    ["http without a URL", one({ handler: "http" }), "http is missing"],
    ["a URL of another sort", one({ handler: "http", http: { url: "file:///etc/passwd" } }), "http.url"],
    ["a password in the URL", one({ handler: "http", http: { url: "http://me:pw@host/" } }), "a password"],
    ["a metadata service", one({ handler: "http", http: { url: "http://169.254.169.254/" } }), "metadata"],
    ["the same in one number", one({ handler: "http", http: { url: "http://2852039166/" } }), "metadata"],
    ["the same in IPv6", one({ handler: "http", http: { url: "http://[::ffff:169.254.169.254]/" } }), "metadata"],
    ["an http timeout over the cap", one({ handler: "http", http: { ...http, timeout: "31s" } }), "At most 30s"],
    ["a bare number", one({ handler: "http", http: { ...http, timeout: 5 as never } }), "not a duration"],
    ["a script as one text", one({ handler: "script", script: { command: "ls -l" as never } }), "There is no shell"],
    [
      "a slow script that Telegram waits for",
      one({ handler: "script", script: { command: ["a"], timeout: "40s" } }),
      "async: true",
    ],
    ["options of another handler", one({ http }), "another handler"],
    ["an async sign-in", one({ handler: "auth", async: true }, { authSecret: "open sesame" }), "never stored"],
    ["a sign-in without a secret", one({ requireAuth: true }), "AUTH_SECRET"],
    ["a sign-in without a door", one({ requireAuth: true }, { authSecret: "open sesame" }), "handler: auth"],
    ["a short AUTH_SECRET", one({}, { authSecret: "sesame" }), "shorter than 8"],
    ["an allow-list that lets nobody in", one({}, { allowedUsers: [] }), "allowedUsers is []"],
    ["a name that cannot be a path", { bots: { "Shop/1": bot({ handler: "echo" }) } }, "cannot be used"],
    ["zero for a time", one({}, { sessionTtl: "0s" }), "longer than that"],
    ["a limit that no timer can keep", one({ handler: () => "", async: true, timeout: "597h" }), "At most 596h"],
    ["a wait that no timer can keep", one({ slowAfter: "597h" }), "At most 596h"],
    ["a limit beside that of http", one({ handler: "http", http, timeout: "20s" }), "http.timeout"],
    [
      "a limit beside that of a script",
      one({ handler: "script", script: { command: ["a"] }, timeout: "20s" }),
      "script.timeout",
    ],
    ["a limit for what takes no time", one({ timeout: "20s" }), "Leave timeout out"],
    ["bots as a list, tokens and all", { bots: [{ token: "nonsense" }] as never }, "is a list"],
    ["a bot that is its token", { bots: { shop: "nonsense" as never } }, "no set of names"],
  ];
  test.each(cases)("%s", (_, options, why) => {
    let said = "";
    try {
      readGateway(options, {});
    } catch (error) {
      const { message = "", hint = "" } = error as { message?: string; hint?: string };
      said = `${message} ${hint}`;
      expect(error).toMatchObject({ code: "HOLDFAST_OPTION_INVALID" });
    }
    expect(said).toContain(why);
    // Nothing that could be nearly a secret.
    expect(said).not.toMatch(/nonsense|fifteen|sixteen|sesame"/);
  });
  test("the timeout's cap itself is taken", () => {
    const gateway = readGateway(one({ handler: "http", http: { ...http, timeout: "30s" } }), {});
    expect(gateway.bots.get("shop")!.timeoutMs).toBe(30_000);
  });
  test("the longest time a timer can keep is taken", () => {
    const options = one({ handler: () => "", async: true, timeout: "596h", slowAfter: "596h" });
    expect(readGateway(options, {}).bots.get("shop")).toMatchObject({ timeoutMs: 2_145_600_000 });
  });
  test("ALLOWED_USERS with a name in it", () => {
    expect(() => readGateway(one({}), { ALLOWED_USERS: "12,@ada" })).toThrow("@ada");
  });
});
