// PostgreSQL is away while Telegram calls: 5xx, redelivered, nothing lost, nothing twice. Through a real socket.
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTest, type TestHoldfast } from "holdfast/testing";
import { createDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { startTcpProxy, type TcpProxy } from "../../../test/support/tcp-proxy.ts";
import { bot, countsOf, message, openScene, type Scene } from "./scene.ts";

let database: TestDatabase;
let proxy: TcpProxy;
let hf: TestHoldfast;
let scene: Scene;

beforeAll(async () => {
  database = await createDatabase();
  proxy = await startTcpProxy(database.url);
  hf = await openTest({ database: proxy.through(database.url), callTimeout: "2s" });
  scene = await openScene(hf, {
    bots: { late: bot({ handler: "echo", async: true }), echo: bot({ handler: "echo" }) },
  });
});
afterAll(async () => {
  await hf.close();
  await proxy.close();
  await database.drop();
});

test("a webhook while PostgreSQL is away is a 5xx; delivered again it is handled once", async () => {
  await proxy.refuse(true);
  proxy.cut();
  const refused = await Promise.all([1, 2, 3].map((id) => scene.post("late", message(id, `text ${id}`, id))));
  expect(refused.map(({ status }) => status)).toEqual([503, 503, 503]);
  expect((await scene.post("echo", message(9, "now", 9))).status).toBe(503);
  await proxy.refuse(false);
  const again = await Promise.all([1, 2, 3].map((id) => scene.post("late", message(id, `text ${id}`, id))));
  expect(again.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(await scene.post("echo", message(9, "now", 9))).toEqual({ status: 200, came: "handled" });
  await scene.runDue();
  expect(scene.texts().toSorted()).toEqual(["now", "text 1", "text 2", "text 3"]);
  expect(await countsOf(scene, "late")).toMatchObject({ accepted: 3, unavailable: 3 });
}, 60_000);

test("the answer to the commit is lost: whatever Telegram was told, it is one job", async () => {
  const lost = proxy.loseReplyTo("late:50");
  const first = await scene.post("late", message(50, "once", 50));
  await lost;
  expect([200, 503]).toContain(first.status);
  expect((await scene.post("late", message(50, "once", 50))).status).toBe(200);
  await scene.runDue();
  expect(scene.texts(50)).toEqual(["once"]);
}, 60_000);
