// The webhook: who gets in, what is accepted once, what is told to whom. On both tiers.
import { once } from "node:events";
import { request as startRequest, type IncomingMessage } from "node:http";
import { beforeAll, describe, expect, test } from "vitest";
import { TIERS, useHoldfast } from "../../../test/support/open-test.ts";
import { bot, countsOf, message, openScene, type Scene, SECRET } from "./scene.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let scene: Scene;
  const runs: number[] = [];
  beforeAll(async () => {
    scene = await openScene(bench.hf, {
      authSecret: "open sesame",
      bots: {
        echo: bot({ handler: "echo" }),
        late: bot({
          async: true,
          handler(update, { text }) {
            runs.push(update.update_id);
            return `late ${text}`;
          },
        }),
        fails: bot({
          handler() {
            throw new Error("not today");
          },
        }),
        door: bot({ handler: "auth", requireAuth: false }),
        vault: bot({ handler: "echo", async: true, requireAuth: true }),
      },
    });
  });

  test("a wrong secret, none, or an unknown bot: 401, and the body is not waited for", async () => {
    expect(await scene.post("echo", message(1, "hi"), "a-secret-that-telegram-showz")).toEqual({ status: 401 });
    expect(await scene.post("echo", message(1, "hi"), null)).toEqual({ status: 401 });
    expect(await scene.post("nobody", message(1, "hi"))).toEqual({ status: 401 });
    expect(await scene.post("nobody", message(1, "hi"), "")).toEqual({ status: 401 });
    // Announces a body and never sends it.
    const silent = startRequest(`${scene.url}/telegram/echo`, {
      method: "POST",
      headers: { "x-telegram-bot-api-secret-token": "wrong", "content-length": "100000" },
    });
    silent.on("error", () => {});
    silent.flushHeaders();
    const [answer] = (await once(silent, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(401);
    silent.destroy();
    expect(await scene.runDue()).toMatchObject({ runs: 0 });
    expect(scene.texts()).toEqual([]);
  });

  test("what is no update is refused; fields that nobody knows are not", async () => {
    for (const body of ["", "{", "[]", "null", '{"update_id":"1"}', '{"update_id":-1}', "[".repeat(50_000)]) {
      expect(await scene.post("echo", body), body.slice(0, 20)).toEqual({ status: 400 });
    }
    expect(await scene.post("late", { update_id: 2, invented_by_telegram: { deep: [1e300, null] } })).toEqual({
      status: 200,
      came: "accepted",
    });
    await scene.runDue();
  });

  test("a bot that is not async answers within the call, and once however often it is asked", async () => {
    for (const came of ["handled", "duplicate", "duplicate"]) {
      expect(await scene.post("echo", message(10, "hello", 70))).toEqual({ status: 200, came });
    }
    await scene.runDue();
    expect(scene.texts(70)).toEqual(["hello"]);
  });

  test("one that is not async and fails says so, once", async () => {
    expect(await scene.post("fails", message(11, "hello", 71))).toEqual({ status: 200, came: "failed" });
    expect(await scene.post("fails", message(11, "hello", 71))).toEqual({ status: 200, came: "duplicate" });
    await scene.runDue();
    expect(scene.texts(71)).toEqual(["Sorry, that did not work. Please try again."]);
  });

  test("async: accepted once under (bot, update_id), before, while and after it is handled", async () => {
    const before = await countsOf(scene, "late");
    expect(await scene.post("late", message(20, "one", 72))).toEqual({ status: 200, came: "accepted" });
    expect(await scene.post("late", message(20, "one", 72))).toEqual({ status: 200, came: "duplicate" });
    await scene.runDue();
    expect(await scene.post("late", message(20, "one", 72))).toEqual({ status: 200, came: "duplicate" });
    // The same number with another content: the first stays.
    expect(await scene.post("late", message(20, "two", 72))).toEqual({ status: 200, came: "conflict" });
    // Another bot's numbers are its own.
    expect(await scene.post("echo", message(20, "mine", 73))).toEqual({ status: 200, came: "handled" });
    expect(await scene.runDue()).toMatchObject({ dead: 0, retrying: 0 });
    expect(runs.filter((id) => id === 20)).toHaveLength(1);
    expect(scene.texts(72)).toEqual(["late one"]);
    const after = await countsOf(scene, "late");
    expect((after["accepted"] ?? 0) - (before["accepted"] ?? 0)).toBe(1);
    expect(after).toMatchObject({ duplicate: 2, conflict: 1 });
  });

  test("also after the job itself was purged", async () => {
    expect(await scene.post("late", message(21, "old", 74))).toMatchObject({ came: "accepted" });
    await scene.runDue();
    await bench.hf.clock.advance("200h");
    await bench.hf.janitor.run();
    expect(
      (await bench.hf.jobs.list({ queue: "telegram", limit: 500 })).jobs.filter((job) => job.key === "late:21"),
    ).toEqual([]);
    expect(await scene.post("late", message(21, "old", 74))).toMatchObject({ came: "duplicate" });
    expect(await scene.runDue()).toMatchObject({ runs: 0 });
    expect(scene.texts(74)).toEqual(["late old"]);
  });

  test("a text that PostgreSQL cannot keep is kept as far as it can be", async () => {
    const text = JSON.stringify(message(22, "NUL and half", 75))
      .replace("NUL", "\\u0000")
      .replace("half", "\\ud83d");
    expect(await scene.post("late", text)).toMatchObject({ status: 200, came: "accepted" });
    await scene.runDue();
    expect(scene.texts(75)).toEqual(["late \ufffd and \ufffd"]);
  });

  test("requireAuth: nothing runs before the secret was shown; the session ends after 24h", async () => {
    const user = 80;
    expect(await scene.post("vault", message(30, "gold", user))).toMatchObject({ came: "refused" });
    expect(await scene.post("door", message(31, "/start", user))).toMatchObject({ came: "refused" });
    expect(await scene.post("door", message(32, "open sesam", user))).toMatchObject({ came: "refused" });
    expect(await scene.post("door", message(33, "/auth open sesame", user))).toMatchObject({ came: "handled" });
    expect(await scene.post("vault", message(34, "gold", user))).toMatchObject({ came: "accepted" });
    await scene.runDue();
    const asked = "Please sign in first.";
    expect(scene.texts(user)).toEqual([asked, asked, "That is not the secret.", "You are signed in.", "gold"]);
    // Somebody else is not signed in by that, and an update without a sender cannot be.
    expect(await scene.post("vault", message(35, "gold", 81))).toMatchObject({ came: "refused" });
    expect(await scene.post("vault", { update_id: 36, channel_post: { chat: { id: 5 }, text: "x" } })).toMatchObject({
      came: "dropped",
    });
    const { rows } = await bench.hf.sql.query<{ left: number }>(
      "select extract(epoch from until_at - :schema.clock())::float8 as left from :schema.telegram_sessions where user_id = 80",
    );
    expect(rows[0]!.left).toBeGreaterThan(86_300);
    expect(rows[0]!.left).toBeLessThanOrEqual(86_400);
  });

  test("a session that is over lets nobody in", async () => {
    const user = 89;
    await scene.post("door", message(137, "/auth open sesame", user));
    // By the database's clock: what was seen is remembered for no longer than the session lasts.
    await bench.hf.sql.query(
      "update :schema.telegram_sessions set until_at = :schema.clock() + interval '300 milliseconds' where user_id = 89",
    );
    expect(await scene.post("vault", message(138, "gold", user))).toMatchObject({ came: "accepted" });
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(await scene.post("vault", message(139, "gold", user))).toMatchObject({ came: "refused" });
  });

  test("the secret that users write is stored nowhere", async () => {
    const { rows } = await bench.hf.sql.query<{ kept: string }>(
      "select string_agg(body, ' ') as kept from :schema.telegram_messages where bot = 'door'",
    );
    expect(rows[0]!.kept).not.toContain("sesam");
    const { jobs } = await bench.hf.jobs.list({ limit: 500 });
    expect(JSON.stringify(jobs)).not.toContain("sesam");
  });

  test("guessing is stopped after five wrong ones, also for the right one, for a quarter of an hour", async () => {
    const user = 82;
    for (let n = 0; n < 5; n += 1) await scene.post("door", message(40 + n, `guess ${n}`, user));
    await scene.post("door", message(46, "open sesame", user));
    expect(await scene.post("vault", message(47, "gold", user))).toMatchObject({ came: "refused" });
    await bench.hf.clock.advance("16m");
    expect(await scene.post("door", message(48, "open sesame", user))).toMatchObject({ came: "handled" });
    expect(await scene.post("vault", message(49, "gold", user))).toMatchObject({ came: "accepted" });
    await scene.runDue();
    const texts = scene.texts(user).slice(5);
    // Each bot is a chat of its own, in order; which of the two speaks first is open.
    const ofDoor = ["Too many tries. Please wait a quarter of an hour.", "You are signed in."];
    expect(texts.filter((text) => ofDoor.includes(text))).toEqual(ofDoor);
    expect(texts.filter((text) => !ofDoor.includes(text))).toEqual(["Please sign in first.", "gold"]);
  });

  test("the page's routes want a token, and typing wants the stand-in of holdfast dev", async () => {
    expect((await fetch(`${scene.url}/telegram-gateway/overview`)).status).toBe(401);
    expect((await fetch(`${scene.url}/telegram-gateway/say`, { method: "POST" })).status).toBe(401);
    const page = await fetch(`${scene.url}/apps/telegram-gateway/`);
    expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
    const html = await page.text();
    // Nothing inline: the policy would not let it run.
    expect(html).not.toMatch(/<style|style=|onclick=|<script(?![^>]*src=)/);
    for (const file of ["page.js", "page.css"]) {
      expect(html).toContain(file);
      expect((await fetch(`${scene.url}/apps/telegram-gateway/${file}`)).status).toBe(200);
    }
  });

  test("what the page shows is where each update stands", async () => {
    await scene.post("late", message(60, "shown", 90));
    type Shown = { bot: string; update: number; status: string; text: string };
    const overview = async (): Promise<Shown | undefined> =>
      (await scene.get<{ updates: Shown[] }>("/telegram-gateway/overview")).updates.find(({ update }) => update === 60);
    type Said = { from: string; text: string; badge: { status: string } | null };
    const chat = async (): Promise<Said[]> =>
      (await scene.get<{ messages: Said[] }>("/telegram-gateway/chats/late/90")).messages;
    expect(await overview()).toMatchObject({ bot: "late", status: "ready", text: "shown" });
    expect(await chat()).toMatchObject([{ from: "user", text: "shown", badge: { status: "ready" } }]);
    await scene.runDue();
    expect(await overview()).toMatchObject({ status: "done" });
    expect(await chat()).toMatchObject([
      { from: "user", text: "shown", badge: { status: "done" } },
      { from: "bot", text: "late shown", badge: null, state: "sent" },
    ]);
    // What was handled at once stands in the list too.
    await scene.post("echo", message(61, "at once", 90));
    const { updates } = await scene.get<{ updates: Shown[] }>("/telegram-gateway/overview");
    expect(updates.find(({ bot: slug }) => slug === "echo")).toMatchObject({ status: "done" });
  });
});

describe("an allow-list", () => {
  const bench = useHoldfast("server");
  test("whoever is not on it is dropped without a word; Telegram hears 200", async () => {
    const scene = await openScene(bench.hf, {
      allowedUsers: [7],
      bots: { echo: bot({ handler: "echo" }), late: bot({ handler: "echo", async: true }) },
    });
    for (const slug of ["echo", "late"]) {
      expect(await scene.post(slug, message(1, "let me in", 8))).toEqual({ status: 200, came: "dropped" });
      expect(await scene.post(slug, { update_id: 3, channel_post: { chat: { id: 7 }, text: "x" } })).toMatchObject({
        came: "dropped",
      });
    }
    expect(await scene.post("echo", message(2, "hello", 7), SECRET)).toMatchObject({ came: "handled" });
    await scene.runDue();
    expect(scene.texts()).toEqual(["hello"]);
    expect((await bench.hf.jobs.list({ queue: "telegram" })).jobs).toEqual([]);
  });
});
