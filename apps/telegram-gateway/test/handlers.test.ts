// The handlers http and script against real servers and real programs, and how messages go out.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { checkGateway } from "../src/config/check.ts";
import { isMetadata, safeLookup } from "../src/handlers/http-address.ts";
import { callHandler } from "../src/handlers/call.ts";
import type { BotOptions } from "../src/index.ts";
import { inParts } from "../src/messages.ts";
import { parseUpdate } from "../src/update.ts";
import { bot, message, openScene, type Scene } from "./scene.ts";

const folder = mkdtempSync(join(tmpdir(), "telegram-scripts-"));
const log = { debug() {}, info() {}, warn() {}, error() {} };

function run(options: Omit<BotOptions, "token" | "secret">, signal = new AbortController().signal) {
  const checked = checkGateway("test", { bots: { shop: bot({ async: true, ...options }) } }).bots.get("shop")!;
  const update = parseUpdate(JSON.stringify(message(5, "hello")))!;
  return callHandler(checked, update, { bot: "shop", text: "hello", attempt: 2, signal, log });
}

describe("http", () => {
  let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void = () => {};
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => answer(request, response, body));
  });
  let url = "";
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const call = (timeout: "5s" | "200ms" = "5s") =>
    run({ handler: "http", http: { url, timeout, headers: { authorization: "Bearer inner" } } });
  const says = (status: number, body: string, headers: Record<string, string> = {}) => {
    answer = (_, response) => void response.writeHead(status, headers).end(body);
  };

  test("the update goes there as it came, and its text comes back", async () => {
    let seen: { headers: IncomingMessage["headers"]; body: string } | undefined;
    answer = (request, response, body) => {
      seen = { headers: request.headers, body };
      response.end('{"text":"from inside"}');
    };
    expect(await call()).toEqual({ text: "from inside" });
    expect(JSON.parse(seen!.body)).toEqual(message(5, "hello"));
    expect(seen!.headers).toMatchObject({
      "content-type": "application/json",
      "idempotency-key": "shop:5",
      "x-attempt": "2",
      "x-telegram-bot": "shop",
      authorization: "Bearer inner",
    });
  });

  test("an empty answer says nothing", async () => {
    for (const body of ["", "{}", '{"text":null}', "  "]) {
      says(200, body);
      expect(await call()).toEqual({});
    }
  });

  test("no answer in time, a redirect, an error, something else than JSON: tried again", async () => {
    answer = () => {};
    await expect(call("200ms")).rejects.toThrow("did not answer within 200 ms");
    // Headers in time and the rest never: the limit is for all of it.
    answer = (_, response) => void response.writeHead(200).write("{");
    await expect(call("200ms")).rejects.toThrow("did not answer within 200 ms");
    says(302, "", { location: "http://127.0.0.1:1/" });
    await expect(call()).rejects.toThrow("answered 302");
    says(500, "oh no");
    await expect(call()).rejects.toMatchObject({ name: "Error", message: "The bot's service answered 500: oh no" });
    says(200, "<html>");
    await expect(call()).rejects.toThrow("not JSON");
    says(200, '{"text":5}');
    await expect(call()).rejects.toThrow("no text");
  });

  test("hopeless answers are not tried again, and a wish for a pause is kept", async () => {
    says(422, "never");
    await expect(call()).rejects.toMatchObject({ name: "Fatal" });
    says(429, "", { "retry-after": "7" });
    await expect(call()).rejects.toMatchObject({ name: "RetryAfter", delayMs: 7_000 });
    says(200, JSON.stringify({ text: "x".repeat(1_100_000) }));
    await expect(call()).rejects.toThrow("more than 1 MiB");
  });

  test("a name that leads to a metadata service is refused when it is looked up", async () => {
    expect([isMetadata("169.254.169.254"), isMetadata("fe80::1"), isMetadata("::ffff:169.254.1.1")]).toEqual([
      true,
      true,
      true,
    ]);
    expect([isMetadata("10.0.0.1"), isMetadata("127.0.0.1"), isMetadata("example.org")]).toEqual([false, false, false]);
    const looked = await new Promise((resolve) =>
      safeLookup("169.254.169.254", {}, (error) => resolve(error?.message)),
    );
    expect(looked).toContain("metadata");
  });
});

describe("script", () => {
  const script = (code: string, more: object = {}) =>
    run({ handler: "script", script: { command: [process.execPath, "--eval", code], ...more } });

  test("the update on its input, the answer on its output, no shell between", async () => {
    const code = `let t = ""; process.stdin.on("data", (d) => t += d).on("end", () => console.log(JSON.parse(t).message.text, process.argv[1]))`;
    const command: [string, ...string[]] = [process.execPath, "--eval", code, "$(touch hacked); `id`"];
    expect(await run({ handler: "script", script: { command } })).toEqual({ text: "hello $(touch hacked); `id`" });
  });

  test("it sees nothing of this process's environment but what it needs", async () => {
    process.env["A_SECRET_OF_THE_GATEWAY"] = "hidden";
    const { text } = await script("console.log(JSON.stringify(process.env))", { env: { MINE: "yes" } });
    delete process.env["A_SECRET_OF_THE_GATEWAY"];
    const seen = JSON.parse(text!) as Record<string, string>;
    expect(seen).toMatchObject({ MINE: "yes", TELEGRAM_BOT: "shop", TELEGRAM_UPDATE_ID: "5", TELEGRAM_ATTEMPT: "2" });
    expect(Object.keys(seen).filter((name) => !/^(MINE|TELEGRAM_\w+|PATH|LANG|LC_ALL|TZ|TMPDIR)$/.test(name))).toEqual(
      [],
    );
  });

  test("too long, too much, a bad end, not there: an error that says which", async () => {
    await expect(script("setInterval(() => {}, 1000)", { timeout: "300ms" })).rejects.toThrow(
      "took longer than 300 ms",
    );
    await expect(script('for (;;) console.log("x".repeat(1000))', { maxOutput: 10_000 })).rejects.toThrow(
      "more than 10000 bytes",
    );
    await expect(script('console.error("no disk"); process.exit(3)')).rejects.toThrow("ended with 3: no disk");
    await expect(run({ handler: "script", script: { command: ["/nowhere/at/all"] } })).rejects.toThrow(
      "cannot be started",
    );
  });

  test.each([
    ["in its group", false],
    ["in a group of its own", true],
  ])(
    "what it left running %s and holds its output open does not turn its answer into a timeout",
    async (_, detached) => {
      const file = join(folder, `left-${String(detached)}`);
      const child = `require("fs").writeFileSync(${JSON.stringify(file)}, String(process.pid)); setInterval(() => {}, 1000)`;
      const options = JSON.stringify({ stdio: ["ignore", "inherit", "inherit"], detached });
      const code = `console.log("the answer");
      require("child_process").spawn(process.execPath, ["--eval", ${JSON.stringify(child)}], ${options}).unref();
      const wait = setInterval(() => { if (require("fs").existsSync(${JSON.stringify(file)})) clearInterval(wait); }, 10)`;
      expect(await script(code, { timeout: "20s" })).toEqual({ text: "the answer" });
      if (detached) process.kill(Number(readFileSync(file, "utf8")), "SIGKILL");
    },
    30_000,
  );

  test("what it started ends with it, and with the job", async () => {
    const file = join(folder, "grandchild");
    const child = `setInterval(() => require("fs").writeFileSync(${JSON.stringify(file)}, String(Date.now())), 20)`;
    const code = `require("child_process").spawn(process.execPath, ["--eval", ${JSON.stringify(child)}], { stdio: "ignore" }); setInterval(() => {}, 1000)`;
    const stop = new AbortController();
    const running = run({ handler: "script", script: { command: [process.execPath, "--eval", code] } }, stop.signal);
    while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
    stop.abort(new Error("the job is over"));
    await expect(running).rejects.toThrow("the job is over");
    // Killed, not only left alone: the file stops changing.
    await new Promise((resolve) => setTimeout(resolve, 100));
    const last = readFileSync(file, "utf8");
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(readFileSync(file, "utf8")).toBe(last);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
});

describe("sending", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  let refusal: { status: number; description: string; retryAfter?: number } | undefined;
  let asked = 0;
  beforeAll(async () => {
    const bots = {
      echo: bot({ handler: "echo" }),
      long: bot({ handler: () => `${"a".repeat(4_000)}\n${"b".repeat(4_000)}` }),
    };
    const onSend = () => {
      asked += 1;
      return refusal;
    };
    scene = await openScene(bench.hf, { bots }, { onSend });
  });
  const sends = async () => (await bench.hf.jobs.list({ kind: "telegram.send" })).jobs;

  test("Telegram's own pause is kept", async () => {
    refusal = { status: 429, description: "Too Many Requests: retry after 20", retryAfter: 20 };
    await scene.post("echo", message(1, "patience", 1));
    await scene.runDue();
    const [job] = await sends();
    const now = await bench.hf.clock.now();
    const waits = job!.runAt.getTime() - now.getTime();
    expect(waits).toBeGreaterThan(15_000);
    expect(waits).toBeLessThanOrEqual(20_000);
    refusal = undefined;
    await bench.hf.clock.advance("20s");
    await scene.runDue();
    expect(scene.texts(1)).toEqual(["patience"]);
  });

  test("a user who blocked the bot is not asked again, and the page says so", async () => {
    refusal = { status: 403, description: "Forbidden: bot was blocked by the user" };
    asked = 0;
    await scene.post("echo", message(2, "anybody?", 2));
    await scene.runDue();
    await bench.hf.clock.advance("2h");
    await scene.runDue();
    expect(asked).toBe(1);
    refusal = undefined;
    const { messages } = await scene.get<{ messages: object[] }>("/telegram-gateway/chats/echo/2");
    expect(messages.at(-1)).toMatchObject({ state: "undeliverable", error: "Forbidden: bot was blocked by the user" });
  });

  test("Telegram is away: tried again, in order, and no error tells the token", async () => {
    refusal = { status: 502, description: "Bad Gateway" };
    await scene.post("echo", message(3, "one", 3));
    await scene.post("echo", message(4, "two", 3));
    await scene.runDue();
    expect(JSON.stringify(await sends())).not.toContain("the-token-of-this-test-bot");
    refusal = undefined;
    await bench.hf.clock.advance("1m");
    await scene.runDue();
    expect(scene.texts(3)).toEqual(["one", "two"]);
  });

  test("a long answer goes out in parts, at the ends of lines and never through a character", async () => {
    await scene.post("long", message(5, "tell me", 4));
    await scene.runDue();
    expect(scene.texts(4)).toEqual(["a".repeat(4_000), "b".repeat(4_000)]);
    const smiles = inParts("😀".repeat(3_000));
    expect(smiles.join("")).toBe("😀".repeat(3_000));
    expect(smiles.every((part) => part.length <= 4_096 && part.isWellFormed())).toBe(true);
    expect(inParts("x".repeat(100_000))).toHaveLength(5);
  });

  test("transcripts go after their retention, in bounded steps", async () => {
    const count = async () =>
      Number(
        (await bench.hf.sql.query<{ n: string }>("select count(*)::text as n from :schema.telegram_messages")).rows[0]!
          .n,
      );
    expect(await count()).toBeGreaterThan(5);
    await bench.hf.clock.advance("167h");
    await bench.hf.janitor.run("telegram-forget");
    expect(await count()).toBeGreaterThan(5);
    await bench.hf.clock.advance("4h");
    await bench.hf.janitor.run("telegram-forget");
    expect(await count()).toBe(0);
  });
});
