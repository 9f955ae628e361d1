// What the storms call "committed, answer lost" was committed: the proxy reads the answer that it throws away. And what they call silent or
// slow has kept something back.
import { Client } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { type LostReply, startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

let database: TestDatabase;
let proxy: TcpProxy;
beforeEach(async () => {
  database = await createDatabase();
  proxy = await startTcpProxy(database.url);
});
afterEach(async () => {
  await proxy.close();
  await database.drop();
});

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

test.each([
  ["a statement of its own", [], "insert into mark values (1)", "committed", 1],
  ["a statement with a long answer", [], "insert into mark values (1) returning repeat('x', 3000000)", "committed", 1],
  ["a statement inside a transaction", ["begin"], "insert into mark values (1)", "inside", 0],
  ["the COMMIT of a transaction", ["begin", "insert into mark values (1)"], "commit", "committed", 1],
  ["the COMMIT of one that has failed", ["begin", "select 1 / 0"], "commit", "failed", 0],
  ["a statement that changes nothing", [], "update mark set n = 2", "nothing", 0],
  ["a statement that fails", [], "insert into mark values (1 / 0)", "failed", 0],
  ["a COPY that has not sent its lines", [], "copy mark from stdin", "asks for more", 0],
] as const)("%s", async (_what, before, text, said, rows) => {
  const direct = await connect(database.url);
  await direct.query("create table mark (n integer)");
  const client = await connect(proxy.through(database.url));
  for (const each of before) await client.query(each).catch(() => {});
  const lost = new Promise<LostReply>((resolve) => {
    proxy.onData(({ direction, data }) =>
      direction === "to-server" && data.includes(text) ? { verdict: "lose-reply", lost: resolve } : "pass",
    );
  });
  // The caller is told nothing but that the connection is gone.
  const [reply] = await Promise.all([lost, expect(client.query(text)).rejects.toThrow(/terminated|ECONNRESET/)]);
  expect(reply).toBe(said);
  expect((await direct.query("select 1 from mark")).rowCount).toBe(rows);
  await direct.end();
});

test("the proxy knows whether silence or slowness has met anybody", async () => {
  const client = await connect(proxy.through(database.url));
  proxy.pause();
  expect(proxy.held).toBe(0);
  const answer = client.query("select 1");
  await until("it keeps something back", async () => proxy.held === 1);
  proxy.resume();
  await answer;
  expect(proxy.held).toBe(0);
  // Nobody is there yet: it is accepted, and what it says first is kept back.
  proxy.pause();
  const another = connect(proxy.through(database.url));
  await until("it keeps something back", async () => proxy.held === 1);
  proxy.resume();
  proxy.pause("to-client");
  const late = client.query("select 2");
  await until("it keeps something back", async () => proxy.held > 0);
  proxy.resume();
  await late;
  proxy.slow({ ms: 5 });
  expect(proxy.held).toBe(0);
  await client.query("select 3");
  expect(proxy.held).toBeGreaterThanOrEqual(2);
  proxy.slow({});
  expect(proxy.held).toBe(0);
  await Promise.all([client.end(), another.then((each) => each.end())]);
});
