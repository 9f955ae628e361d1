// What was read goes to its owner's devices: to one of them, once, whatever breaks off; and nothing of it stays here.
import { beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { until } from "../../../test/support/until.ts";
import { type Device, importOf, openScene, type Scene, served } from "./scene.ts";

describe.each(["server", "embedded"] as const)("on the %s tier", (tier) => {
  const bench = useHoldfast(tier);
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, { pickupTtl: "1h", pickupTries: 2 });
  });

  const page = (n: number): string => `${scene.site.url}/many/${n}`;
  const stateOf = async (device: Device, id: string): Promise<string> =>
    (await device.call("GET", `/imports/${id}`)).body.state;

  test("the server keeps no text after the ack", async () => {
    const ada = await scene.as("ada");
    const id = await importOf(ada, [page(1)]);
    await served(ada, id);
    const chunks = async (): Promise<number> => {
      const { rows } = await bench.hf.sql.query<{ n: string }>("select count(*) as n from :schema.parcel_chunks");
      return Number(rows[0]!.n);
    };
    expect(await chunks()).toBe(1);
    const [article] = await ada.takeAll("laptop");
    expect(article).toMatchObject({
      asked: page(1),
      url: page(1),
      title: "How lighthouses were counted",
      warning: null,
    });
    expect(await chunks()).toBe(0);
    expect(await stateOf(ada, id)).toBe("done");
    // Not in any other table either.
    const { rows } = await bench.hf.sql.query<{ name: string }>(
      "select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables where table_type = 'BASE TABLE' and table_schema = $1",
      [bench.hf.schema],
    );
    expect(rows.length).toBeGreaterThan(15);
    for (const { name } of rows) {
      const found = await bench.hf.sql.query(
        `select 1 from ${name} t where t::text ilike '%green cover%' or t::text ilike '%lighthouses%' limit 1`,
      );
      expect([name, found.rowCount]).toEqual([name, 0]);
    }
  });

  test("two devices take one article: one has it, the other is told; an ack that is said again is known", async () => {
    const bob = await scene.as("bob");
    const id = await importOf(bob, [page(2)]);
    await served(bob, id);
    const { pickups } = (await bob.call("GET", "/pickups")).body;
    expect(pickups).toHaveLength(1);
    const [phone, laptop] = await Promise.all([
      bob.call("GET", `/pickups/${pickups[0].id}`),
      bob.call("GET", `/pickups/${pickups[0].id}`),
    ]);
    expect([phone.status, laptop.status]).toEqual([200, 200]);
    const ack = (device: string) =>
      bob.call("POST", `/imports/${id}/items/1/ack`, { outcome: "saved", device, url: page(2) });
    const answers = await Promise.all([ack("phone"), ack("laptop")]);
    expect(answers.filter(({ body }) => body.mine)).toHaveLength(1);
    expect(answers.map(({ body }) => body.outcome)).toEqual(["saved", "saved"]);
    const winner = answers[0].body.mine ? "phone" : "laptop";
    expect((await ack(winner)).body).toEqual({ outcome: "saved", first: false, mine: true });
    expect((await bob.call("GET", `/pickups/${pickups[0].id}`)).status).toBe(404);
    expect((await bob.call("GET", "/pickups")).body.pickups).toEqual([]);
    const { rows } = await bench.hf.sql.query<{ n: string }>(
      "select count(*) as n from :schema.articles_saved where owner = 'bob'",
    );
    expect(Number(rows[0]!.n)).toBe(1);
  });

  test("what the owner has is a duplicate: before it is fetched, after a redirect, and when two imports race", async () => {
    const cem = await scene.as("cem");
    const { site } = scene;
    await served(cem, await importOf(cem, [`${site.url}/articles/3`]));
    await cem.takeAll("laptop");
    const asked = site.asked.get("/articles/3");
    const again = await importOf(cem, [`${site.url}/articles/3?utm_medium=x`]);
    expect(await served(cem, again)).toMatchObject([{ state: "duplicate" }]);
    expect(site.asked.get("/articles/3")).toBe(asked);
    expect(await served(cem, await importOf(cem, [`${site.url}/moved/3`]))).toMatchObject([{ state: "duplicate" }]);
    // Two imports of one page, both read before either is taken.
    const [one, two] = await Promise.all([importOf(cem, [page(3)]), importOf(cem, [page(3)])]);
    await Promise.all([served(cem, one), served(cem, two)]);
    await cem.takeAll("laptop");
    const states = [await served(cem, one), await served(cem, two)].flat().map((item) => item.state as string);
    expect(states.toSorted()).toEqual(["duplicate", "saved"]);
    // Nobody else's.
    const dee = await scene.as("dee");
    expect(await served(dee, await importOf(dee, [page(3)]))).toMatchObject([{ state: "handed-over" }]);
    // The count before starting knows it, and it can be asked for all the same.
    expect((await cem.call("POST", "/preview", { text: `${page(3)} ${page(4)}` })).body.counts).toEqual({
      valid: 2,
      invalid: 0,
      duplicates: 0,
      saved: 1,
    });
    expect(await served(cem, await importOf(cem, [page(3)], { again: true }))).toMatchObject([
      { state: "handed-over" },
    ]);
  });

  test("asked for again, a page comes also by the address that redirects to it, and once; who had it has it until then", async () => {
    const gus = await scene.as("gus");
    const moved = `${scene.site.url}/moved/8`;
    const straight = `${scene.site.url}/articles/8`;
    const known = async (): Promise<number[]> => {
      const counts = [moved, straight].map((url) => gus.call("POST", "/preview", { text: url }));
      return (await Promise.all(counts)).map(({ body }) => body.counts.saved);
    };
    await served(gus, await importOf(gus, [moved]));
    await gus.takeAll("laptop");
    expect(await served(gus, await importOf(gus, [moved]))).toMatchObject([{ state: "duplicate" }]);
    // A device that has it says so, as the page does: it is known as before.
    const had = await importOf(gus, [moved], { again: true });
    expect(await served(gus, had)).toMatchObject([{ state: "handed-over" }]);
    expect(await known()).toEqual([1, 1]);
    const word = { outcome: "duplicate", device: "laptop", url: straight };
    expect((await gus.call("POST", `/imports/${had}/items/1/ack`, word)).body.outcome).toBe("duplicate");
    expect(await known()).toEqual([1, 1]);
    // A new device takes it. Of two links of one import that lead to it, one is a duplicate.
    const key = "again-and-again";
    const both = [straight, moved];
    const id = await importOf(gus, both, { again: true, key });
    await served(gus, id);
    await gus.takeAll("phone");
    const states = (await served(gus, id)).map((item) => item.state as string);
    expect(states.toSorted()).toEqual(["duplicate", "saved"]);
    // The answer to the request was lost: it is the same import, and forgets nothing that it saved meanwhile.
    expect(await importOf(gus, both, { again: true, key })).toBe(id);
    expect(await known()).toEqual([1, 1]);
    expect(await served(gus, await importOf(gus, [moved]))).toMatchObject([{ state: "duplicate" }]);
  });

  test("a client that stays away longer than the time loses nothing: the page is fetched again, and after the tries can be retried", async () => {
    const eve = await scene.as("eve");
    const id = await importOf(eve, [page(5)]);
    await served(eve, id);
    const { pickups: old } = (await eve.call("GET", "/pickups")).body;
    for (const bounces of [1, 2]) {
      await bench.hf.clock.advance("61m");
      await bench.hf.janitor.run("expire-hand-backs");
      await until("it to be handed over again", async () => (await served(eve, id))[0].bounces === bounces);
      expect(await served(eve, id)).toMatchObject([{ state: "handed-over", bounces }]);
    }
    expect(scene.site.asked.get("/many/5")).toBe(3);
    // A late word about what is gone: the one that is there now is meant.
    expect((await eve.call("GET", `/pickups/${old[0].id}`)).status).toBe(404);
    await bench.hf.clock.advance("61m");
    await bench.hf.janitor.run("expire-hand-backs");
    expect(await served(eve, id)).toMatchObject([{ state: "error", error: { code: "expired" } }]);
    // A client is back: it is fetched without being asked for; what failed for another reason is not.
    const missing = await importOf(eve, [`${scene.site.url}/missing`]);
    await served(eve, missing);
    expect((await eve.call("POST", "/returned", {})).body).toEqual({ again: 1 });
    expect((await eve.call("POST", "/returned", {})).body).toEqual({ again: 0 });
    expect(await served(eve, missing)).toMatchObject([{ state: "error" }]);
    expect(await served(eve, id)).toMatchObject([{ state: "handed-over" }]);
    expect(await eve.takeAll("laptop")).toHaveLength(1);
    expect(await stateOf(eve, id)).toBe("done");
    const metrics = await bench.hf.metrics.text();
    expect(metrics).toMatch(/holdfast_articles_import_pickups_expired_total [2-9]\b/);
  });

  test("an ack while the page is fetched again is refused, so that nothing is taken for saved that is not", async () => {
    const fay = await scene.as("fay");
    const id = await importOf(fay, [page(6)]);
    await served(fay, id);
    await scene.worker?.stop();
    await bench.hf.clock.advance("61m");
    await bench.hf.janitor.run("expire-hand-backs");
    expect(
      await fay.call("POST", `/imports/${id}/items/1/ack`, { outcome: "saved", device: "laptop", url: page(6) }),
    ).toMatchObject({
      status: 409,
      body: { error: { code: "ARTICLES_NOT_HANDED_OVER" } },
    });
    const worker = await bench.hf.work(scene.kinds);
    await served(fay, id);
    expect(await fay.takeAll("laptop")).toHaveLength(1);
    await worker.stop();
  });
});
