// holdfast inbox: a sender and a recipient as their users have them, against a server of its own; the recipient is killed
// and started again.
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanUp, makeUsedFolder, type Output, run, type Running, spawnHoldfast, start } from "./holdfast.ts";

let dev: Running;
let cwd: string;
const holdfast = (...args: string[]): Promise<Output> =>
  run(["inbox", ...args], { cwd, env: { HOLDFAST_URL: dev.ready.url } });
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

beforeAll(async () => {
  cwd = await makeUsedFolder();
  await writeFile(
    join(cwd, "holdfast.config.json"),
    JSON.stringify({ inbox: { maxFileBytes: 50_000_000, maxFilesPerPut: 5 } }),
  );
  dev = await start(["dev", "--port", "0"], { cwd });
});
afterAll(cleanUp);

async function makeFile(name: string, size: number): Promise<Buffer> {
  const bytes = randomBytes(size);
  await writeFile(join(cwd, name), bytes);
  return bytes;
}

describe("put, list, fetch, ack, stats", () => {
  test("a file goes in, is listed, comes out, is acked", async () => {
    const bytes = await makeFile("my cat.png", 300_000);
    const put = await holdfast("put", "ws-1", "my cat.png", "--type", "image/png", "--meta", '{"chat":1}');
    expect(put.code, put.stderr).toBe(0);
    const id = put.stdout.trim();
    const { parcels } = JSON.parse((await holdfast("list", "ws-1", "--json")).stdout) as { parcels: object[] };
    expect(parcels).toMatchObject([
      { id, name: "my_cat.png", type: "image/png", size: 300_000, sha256: sha256(bytes), meta: { chat: 1 } },
    ]);
    expect((await holdfast("list", "ws-1", "--state", "waiting")).stdout).toContain("my_cat.png");
    const fetched = await holdfast("fetch", "ws-1", id, "--into", "out");
    expect(fetched.code, fetched.stderr).toBe(0);
    expect(sha256(await readFile(fetched.stdout.trim()))).toBe(sha256(bytes));
    expect((await holdfast("list", "ws-1", "--state", "fetched")).stdout).toContain(id);
    const again = await holdfast("fetch", "ws-1", id, "--into", "out", "--ack");
    expect(again.stderr).toContain("It was there already");
    expect((await holdfast("ack", "ws-1", id)).stdout).toContain("is acked, as before");
    expect((await holdfast("stats", "ws-1")).stdout).toMatch(/ws-1\s+0\s+0\s+0\s+1\s+0\s+0/);
    expect(await readdir(join(cwd, "out"))).toHaveLength(1);
  });

  test("several files are one put; stdin is a file; --stdout gives the bytes", async () => {
    await makeFile("a.bin", 10);
    await makeFile("b.bin", 400_000);
    const put = await holdfast("put", "ws-2", "a.bin", "b.bin", "--key", "k");
    expect(put.stdout.trim().split("\n")).toHaveLength(2);
    const again = await holdfast("put", "ws-2", "a.bin", "b.bin", "--key", "k");
    expect(again.stdout).toBe(put.stdout);
    const other = await holdfast("put", "ws-2", "b.bin", "--key", "k");
    expect(other.code).toBe(6);
    const env = { HOLDFAST_URL: dev.ready.url };
    const stdin = await run(["inbox", "put", "ws-2", "-", "--name", "note.txt"], { cwd, env, stdin: "hello" });
    const out = await holdfast("fetch", "ws-2", stdin.stdout.trim(), "--stdout");
    expect(out.stdout).toBe("hello");
  });

  test("what cannot be is said, with the exit code it stands for", async () => {
    for (const [args, code, text] of [
      [["put", "ws-3", "missing.bin"], 2, "cannot be read"],
      [["put", "ws-3", "."], 2, "not a file"],
      [["put", "no body", "a.bin"], 2, "recipient"],
      [["put", "ws-3", "a.bin", "--ttl", "5"], 2, "ttl"],
      [["fetch", "ws-3", "00000000-0000-7000-8000-000000000000"], 5, "no parcel"],
      [["ack", "ws-3", "00000000-0000-7000-8000-000000000000"], 5, "no parcel"],
      [["pull", "ws-3"], 2, "--into"],
    ] as const) {
      const { code: found, stderr } = await holdfast(...args);
      expect([args.join(" "), found]).toEqual([args.join(" "), code]);
      expect(stderr).toContain(text);
    }
  });
});

describe("pull", () => {
  test("--once takes everything that waits, acks it, and ends; a second time there is nothing", async () => {
    const files = await Promise.all([1, 2, 3].map((n) => makeFile(`same-${n}.bin`, n * 100_000)));
    await holdfast("put", "ws-4", "same-1.bin", "same-2.bin", "same-3.bin");
    const pulled = await holdfast("pull", "ws-4", "--into", "in4", "--once");
    expect(pulled.code, pulled.stderr).toBe(0);
    const paths = pulled.stdout.trim().split("\n");
    const hashes = await Promise.all(paths.map(async (path) => sha256(await readFile(path))));
    expect(hashes).toEqual(files.map(sha256));
    expect((await stat(paths[0]!)).mode & 0o777).toBe(0o600);
    expect((await holdfast("pull", "ws-4", "--into", "in4", "--once")).stdout).toBe("");
    expect(await readdir(join(cwd, "in4"))).toHaveLength(3);
    expect((await holdfast("list", "ws-4", "--state", "acked", "--json")).stdout.match(/"id"/g)).toHaveLength(3);
  });

  test("it waits for more, is killed in the middle of a file, and goes on: one copy, whole, acked last", async () => {
    const env = { HOLDFAST_URL: dev.ready.url };
    const into = join(cwd, "in5");
    const first = spawnHoldfast(["inbox", "pull", "ws-5", "--into", "in5"], { cwd, env });
    await first.says("Waiting for parcels");
    await makeFile("small.bin", 1_000);
    await holdfast("put", "ws-5", "small.bin");
    await expect.poll(() => readdir(into).catch(() => []), { timeout: 15_000 }).toHaveLength(2);
    const bytes = await makeFile("large.bin", 40_000_000);
    await holdfast("put", "ws-5", "large.bin");
    await expect
      .poll(async () => (await readdir(into)).some((name) => name.endsWith(".part")), { timeout: 15_000, interval: 5 })
      .toBe(true);
    first.kill("SIGKILL");
    await first.ended;
    const second = spawnHoldfast(["inbox", "pull", "ws-5", "--into", "in5", "--once"], { cwd, env });
    expect((await second.ended).code).toBe(0);
    const names = (await readdir(into)).filter((name) => name.endsWith(".bin"));
    expect(names).toHaveLength(2);
    const large = names.find((name) => name.endsWith("large.bin"))!;
    expect(sha256(await readFile(join(into, large)))).toBe(sha256(bytes));
    expect((await readdir(into)).filter((name) => name.endsWith(".part"))).toEqual([]);
    expect((await holdfast("list", "ws-5", "--state", "waiting,fetched")).stdout).toBe("");
  });

  test("a file that cannot be saved stays in the inbox, the others come, and the exit code says so", async () => {
    await makeFile("one.bin", 10);
    const [id] = (await holdfast("put", "ws-6", "one.bin")).stdout.trim().split("\n");
    await makeFile("two.bin", 20);
    await holdfast("put", "ws-6", "two.bin");
    await mkdir(join(cwd, "in6"));
    await writeFile(join(cwd, "in6", `${id}-one.bin`), "something of mine");
    const pulled = await holdfast("pull", "ws-6", "--into", "in6", "--once");
    expect(pulled.code).toBe(1);
    expect(pulled.stderr).toContain("stays in the inbox");
    expect(pulled.stdout).toContain("two.bin");
    expect(await readFile(join(cwd, "in6", `${id}-one.bin`), "utf8")).toBe("something of mine");
    expect((await holdfast("list", "ws-6", "--state", "waiting,fetched", "--json")).stdout).toContain(id);
  });

  test("a second one in the same folder is refused", async () => {
    const env = { HOLDFAST_URL: dev.ready.url };
    const first = spawnHoldfast(["inbox", "pull", "ws-7", "--into", "in7"], { cwd, env });
    await first.says("Waiting for parcels");
    await expect.poll(() => readdir(join(cwd, "in7")).catch(() => []), { timeout: 15_000 }).not.toEqual([]);
    const second = await holdfast("pull", "ws-7", "--into", "in7", "--once");
    expect(second.code).toBe(75);
    expect(second.stderr).toContain("Another process pulls into");
    first.kill("SIGTERM");
    expect((await first.ended).code).toBe(0);
  });

  test("a wrong server is waited for, and a refusal is not", async () => {
    const env = { HOLDFAST_URL: "http://127.0.0.1:9" };
    const once = await run(["inbox", "pull", "ws-8", "--into", "in8", "--once"], { cwd, env });
    expect(once.code).toBe(69);
    const refused = await holdfast("pull", "no body", "--into", "in8");
    expect(refused.code).toBe(2);
  });
});
