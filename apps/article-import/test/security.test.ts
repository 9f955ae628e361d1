// Pages that users name: nothing inside is reached, neither by its address in any spelling, nor by a redirect; and nothing a
// site sends can take more than its share.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { importOf, openScene, type Scene, served } from "./scene.ts";

/** Addresses that are not public, as somebody might spell them. */
const INSIDE_BY_SORT: Readonly<Record<string, string>> = {
  Loopback: `http://127.0.0.1/ http://127.0.0.2/ http://127.1/ http://127.0.1/ http://0x7f.1/ http://0177.0.0.1/
    http://2130706433/ http://0x7f000001/ http://017700000001/ https://127.0.0.1/ http://[::1]/
    http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://127。0。0。1/`,
  "Nowhere, and this network": `http://0.0.0.0/ http://0/ http://[::]/ http://0.1.2.3/ http://[::ffff:0.0.0.0]/`,
  Private: `http://10.0.0.1/ http://10.255.255.255/ http://172.16.0.1/ http://172.31.255.254/
    http://192.168.0.1/ http://192.168.1.1/ http://0xc0a80001/ http://3232235521/
    http://[::ffff:10.0.0.1]/ http://[::ffff:c0a8:1]/`,
  "Link-local and metadata services": `http://169.254.169.254/latest/meta-data/ http://0xa9fea9fe/ http://2852039166/
    http://[::ffff:a9fe:a9fe]/ http://169.254.170.2/ http://168.63.129.16/ http://100.100.100.200/
    http://metadata.google.internal/ http://metadata/ http://[fe80::1]/ http://[fd00:ec2::254]/`,
  "Carrier NAT, benchmarks, documentation, reserved, multicast, broadcast": `http://100.64.0.1/ http://100.127.255.255/ http://198.18.0.1/ http://192.0.0.1/ http://192.0.2.1/
    http://198.51.100.1/ http://203.0.113.1/ http://240.0.0.1/ http://255.255.255.255/ http://224.0.0.1/`,
  "IPv6: unique local, old site-local, multicast, and those that carry an IPv4 address": `http://[fc00::1]/ http://[fd12:3456::1]/ http://[fec0::1]/ http://[ff02::1]/
    http://[64:ff9b::7f00:1]/ http://[64:ff9b::a9fe:a9fe]/ http://[2002:7f00:1::]/
    http://[2002:a9fe:a9fe::1]/ http://[2001:0:7f00:1::]/ http://[::7f00:1]/ http://[2001:db8::1]/
    http://[100::1]/`,
  "ports that are not the web's": `http://example.com:22/ http://example.com:6379/ http://example.com:11211/ https://example.com:25/`,
};
const INSIDE = Object.values(INSIDE_BY_SORT).flatMap((text) => text.split(/\s+/));
const NO_LINKS = [
  "file:///etc/passwd",
  "ftp://10.0.0.1/",
  "gopher://127.0.0.1:6379/_x",
  "http://user:pw@10.0.0.1/",
  "//10.0.0.1/",
  "http://",
];

describe("what is inside stays there", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  let inner: Server;
  let reached = 0;
  let innerUrl = "";
  beforeAll(async () => {
    inner = createServer((_, response) => {
      reached += 1;
      response.end("<p>a secret</p>");
    });
    await new Promise<void>((resolve) => inner.listen(0, "127.0.0.1", resolve));
    innerUrl = `http://127.0.0.1:${(inner.address() as AddressInfo).port}/`;
    scene = await openScene(bench.hf, { attempts: 1, concurrency: 10, robots: "ignore" });
  });
  afterAll(() => new Promise((resolve) => inner.close(resolve)));

  test(`${INSIDE.length} spellings of addresses inside are refused when they are asked for`, async () => {
    expect(INSIDE.length).toBeGreaterThanOrEqual(60);
    const { counts } = (await scene.call("POST", "/preview", { text: NO_LINKS.join("\n") })).body;
    expect(counts).toMatchObject({ valid: 0 });
    const links = [...INSIDE, innerUrl];
    const items = await served(scene, await importOf(scene, links), 30_000);
    // Some are the same address by now.
    expect(items.length).toBeGreaterThan(45);
    expect(items.map((item) => [item.url, item.state, item.error?.code])).toEqual(
      items.map((item) => [item.url, "error", "ARTICLES_PRIVATE_ADDRESS"]),
    );
  }, 60_000);

  test("they are refused when a site redirects to them, which itself may be asked", async () => {
    const links = [...INSIDE, innerUrl, ...NO_LINKS.slice(0, 4)].map(
      (link) => `${scene.site.url}/to?url=${encodeURIComponent(link)}`,
    );
    const id = await importOf(scene, links);
    const items = await served(scene, id, 30_000);
    expect(items.map((item) => [item.url, item.state, item.error?.code])).toEqual(
      links.map((link) => [link, "error", expect.stringMatching(/ARTICLES_(PRIVATE_ADDRESS|BAD_REDIRECT)/)]),
    );
    expect(reached).toBe(0);
    expect((await scene.call("GET", "/pickups")).body.pickups).toEqual([]);
  }, 60_000);

  test("a bomb of 10 GB in 10 MB is refused within its caps, and so is a page without an end", async () => {
    const before = process.memoryUsage().rss;
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss - before)), 10);
    const began = performance.now();
    const id = await importOf(scene, [`${scene.site.url}/bomb`, `${scene.site.url}/huge`]);
    const items = await served(scene, id);
    clearInterval(watch);
    expect(items).toMatchObject([
      { state: "error", attempt: 1, error: { code: "ARTICLES_TOO_LARGE" } },
      { state: "error", attempt: 1, error: { code: "ARTICLES_TOO_LARGE" } },
    ]);
    expect(performance.now() - began).toBeLessThan(10_000);
    // The site is in the same process.
    expect(most).toBeLessThan(200 * 1_048_576);
  }, 30_000);
});
