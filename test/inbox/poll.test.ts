// poll(): parcels as they come. Woken at once, and by looking when nothing wakes it; acked when the loop comes back;
// nothing is skipped because something failed; consumers of one inbox share the work.
import { readdir, readFile, stat } from "node:fs/promises";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OptionInvalid } from "#src/errors.js";
import { caught } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { purge, sha256, someBytes, someone } from "./scene.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-poll-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const until = (): { signal: AbortSignal; stop(): void } => {
  const controller = new AbortController();
  return { signal: controller.signal, stop: () => controller.abort() };
};

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);

  test("each parcel comes once, in order, and is acked when the loop comes back for the next", async () => {
    const inbox = bench.hf.inbox(someone());
    const put = await inbox.putMany(["a", "b", "c"].map((content) => ({ content })));
    const seen: string[] = [];
    const { signal, stop } = until();
    for await (const { parcel, open } of inbox.poll({ signal })) {
      if (seen.length > 0) expect((await inbox.get(put[seen.length - 1]!.id))!.state).toBe("acked");
      seen.push(await (await open()).text());
      expect((await inbox.get(parcel.id))!.state).toBe("fetched");
      if (seen.length === 3) stop();
    }
    expect(seen).toEqual(["a", "b", "c"]);
    expect((await inbox.list({ state: "acked" })).parcels).toHaveLength(3);
    expect((await inbox.stats()).polledAt).toBeInstanceOf(Date);
  });

  test("something that arrives wakes it at once, long before it would have looked", async () => {
    const inbox = bench.hf.inbox(someone());
    const { signal, stop } = until();
    const poll = inbox.poll({ signal, every: "10m" });
    const next = poll.next();
    // It has looked and found nothing: the recipient's poll is on record.
    await expect.poll(async () => (await inbox.stats()).polledAt).not.toBeNull();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const began = Date.now();
    await inbox.put("now");
    expect((await next).value).toMatchObject({ parcel: { size: 3 } });
    expect(Date.now() - began).toBeLessThan(2_000);
    stop();
    await poll.return();
  });

  test("with a transaction of the caller's own, hf.wake() wakes it", async () => {
    const inbox = bench.hf.inbox(someone());
    const { signal } = until();
    const poll = inbox.poll({ signal, every: "10m" });
    const next = poll.next();
    await expect.poll(async () => (await inbox.stats()).polledAt).not.toBeNull();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await bench.db.transaction(async (tx) => {
      await inbox.put("in tx", { tx: { query: (text, values = []) => tx.query<object>(text, values) } });
    });
    bench.hf.wake();
    expect((await next).value).toMatchObject({ parcel: { size: 5 } });
    await poll.return();
  });

  test("with into, files are saved, verified and acked last", async () => {
    const inbox = bench.hf.inbox(someone());
    const files = [someBytes(10), someBytes(600_000)];
    await inbox.putMany(files.map((content, n) => ({ content, name: `same name ${n}.bin` })));
    const into = join(folder, inbox.recipient);
    const { signal, stop } = until();
    const paths: string[] = [];
    for await (const { parcel, path } of inbox.poll({ signal, into })) {
      const bytes = await readFile(path!);
      expect(sha256(bytes)).toBe(parcel.sha256);
      expect((await stat(path!)).mode & 0o777).toBe(0o600);
      expect((await inbox.get(parcel.id))!.state).toBe("fetched");
      paths.push(path!);
      if (paths.length === 2) stop();
    }
    expect((await readdir(into)).map((name) => join(into, name)).toSorted()).toEqual(paths.toSorted());
    expect((await inbox.list({ state: "acked" })).parcels).toHaveLength(2);
  });

  test("what failed, or was left, is not acked and comes again; what came after it is not kept waiting", async () => {
    const inbox = bench.hf.inbox(someone());
    const [first, second] = await inbox.putMany([{ content: "bad" }, { content: "good" }]);
    const seen: string[] = [];
    const failing = (async () => {
      for await (const { parcel } of inbox.poll()) {
        seen.push(parcel.id);
        throw new Error("disk full");
      }
    })();
    expect(await caught(failing)).toMatchObject({ message: "disk full" });
    expect((await inbox.get(first!.id))!.state).toBe("waiting");
    const { signal, stop } = until();
    for await (const { parcel, leave } of inbox.poll({ signal, every: "50ms" })) {
      seen.push(parcel.id);
      if (parcel.id === second!.id) await bench.hf.clock.advance("6s");
      else if (seen.filter((id) => id === first!.id).length === 2) {
        leave();
        await bench.hf.clock.advance("1ms");
      } else stop();
      if (seen.length === 3) setTimeout(() => void bench.hf.clock.advance("6s"), 50);
    }
    expect(seen).toEqual([first!.id, second!.id, first!.id, first!.id]);
    expect((await inbox.list({ state: "acked" })).parcels).toHaveLength(2);
  });

  test("a body that swallowed a failed read does not ack what it could not read", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id } = await inbox.put(someBytes(1_000));
    await bench.db.query(
      `update "${bench.store.schema}".parcel_chunks set bytes = substring(bytes from 2) where parcel_id = $1`,
      [id],
    );
    const { signal, stop } = until();
    for await (const { open } of inbox.poll({ signal })) {
      expect(await caught((await open()).bytes())).toMatchObject({ code: "HOLDFAST_CONTENT_CORRUPT" });
      stop();
    }
    expect((await inbox.get(id))!.state).toBe("waiting");
  });

  test("options that cannot work are refused", async () => {
    const inbox = bench.hf.inbox(someone());
    for (const options of [{ every: 5 }, { every: "1ms" }, { hold: "1ms" }, { evry: "1s" }]) {
      expect(await caught(inbox.poll(options as object).next())).toBeInstanceOf(OptionInvalid);
    }
  });

  test("closing the client ends the loop", async () => {
    const inbox = bench.hf.inbox(someone());
    const controller = new AbortController();
    const poll = inbox.poll({ signal: controller.signal });
    const next = poll.next();
    controller.abort();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(await purge(bench)).toBeTypeOf("object");
  });
});

describe("consumers that race on one inbox (server, several connections)", () => {
  const bench = useHoldfast("server");

  test("every parcel is handled once, by one of four consumers in four clients, and all are acked", async () => {
    const recipient = someone();
    const count = 120;
    const others = await Promise.all([bench.another(), bench.another(), bench.another()]);
    const handled: string[] = [];
    const controller = new AbortController();
    const consume = async (hf: typeof bench.hf): Promise<number> => {
      let mine = 0;
      for await (const { parcel, open } of hf.inbox(recipient).poll({ signal: controller.signal, every: "100ms" })) {
        const bytes = await (await open()).bytes();
        expect(sha256(bytes)).toBe(parcel.sha256);
        handled.push(parcel.id);
        mine += 1;
      }
      return mine;
    };
    const consumers = [bench.hf, ...others].map(consume);
    const put: string[] = [];
    for (let n = 0; n < count; n += 8) {
      const files = Array.from({ length: 8 }, () => ({ content: someBytes(1_000) }));
      put.push(...(await bench.hf.inbox(recipient).putMany(files)).map(({ id }) => id));
    }
    await expect.poll(async () => (await bench.hf.inbox(recipient).stats()).acked, { timeout: 20_000 }).toBe(count);
    controller.abort();
    const shares = await Promise.all(consumers);
    expect(handled.toSorted()).toEqual(put.toSorted());
    expect(shares.filter((share) => share > 0).length).toBeGreaterThan(1);
  });

  test("a consumer that died keeps its parcel for the hold, then another gets it", async () => {
    const recipient = someone();
    const { id } = await bench.hf.inbox(recipient).put("x");
    const dying = await bench.another();
    const held = dying.inbox(recipient).poll({ hold: "2s" });
    expect((await held.next()).value).toMatchObject({ parcel: { id } });
    // Without a word: no return(), no ack.
    await dying.close();
    const poll = bench.hf.inbox(recipient).poll({ every: "100ms", hold: "2s" });
    const began = Date.now();
    expect((await poll.next()).value).toMatchObject({ parcel: { id } });
    expect(Date.now() - began).toBeGreaterThan(500);
    await poll.return();
  });

  test("an ack in two processes at once counts once", async () => {
    const recipient = someone();
    const { id } = await bench.hf.inbox(recipient).put("x");
    const other = await bench.another();
    const acks = await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? bench.hf : other).inbox(recipient).ack(id)),
    );
    expect(acks.filter(({ again }) => !again)).toHaveLength(1);
    expect((await bench.hf.inbox(recipient).stats()).acked).toBe(1);
  });

  test("a put in another process wakes a poll here at once", async () => {
    const recipient = someone();
    const other = await bench.another();
    const poll = bench.hf.inbox(recipient).poll({ every: "10m" });
    const next = poll.next();
    await expect.poll(async () => (await bench.hf.inbox(recipient).stats()).polledAt).not.toBeNull();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const began = Date.now();
    await other.inbox(recipient).put("x");
    expect((await next).value).toMatchObject({ parcel: { size: 1 } });
    expect(Date.now() - began).toBeLessThan(3_000);
    await poll.return();
  });
});
