// What goes in comes out, whatever it is and however it arrives; what is wrong with a put is said before anything is
// stored; what breaks off is never seen.
import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { ContentCorrupt, OptionInvalid, QuotaExceeded, StateConflict, TooLarge } from "#src/errors.js";
import { CHUNK_BYTES } from "#src/inbox/put.js";
import { caught, makeKind } from "../support/make.ts";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { collect, inPieces, purge, sha256, someBytes, someone, tablesOf } from "./scene.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier, { inbox: { maxFileBytes: 3 * CHUNK_BYTES + 10, maxFilesPerPut: 4 } });

  test.each([1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 3 * CHUNK_BYTES + 10])(
    "%i bytes come out as they went in, as a Buffer and as a stream",
    async (size) => {
      const inbox = bench.hf.inbox(someone());
      const bytes = someBytes(size);
      const whole = await inbox.put(bytes, { name: "a.bin" });
      const streamed = await inbox.put(Readable.from(inPieces(bytes)), { name: "b.bin" });
      for (const parcel of [whole, streamed]) {
        expect(parcel).toMatchObject({ size, sha256: sha256(bytes), state: "waiting", created: true, conflict: false });
        expect((await (await inbox.open(parcel.id)).bytes()).equals(bytes)).toBe(true);
      }
    },
  );

  test("text, JSON, a Blob and a web stream are content too", async () => {
    const inbox = bench.hf.inbox(someone());
    const text = await inbox.put("grüße", { name: "a.txt" });
    expect(text.type).toBe("text/plain");
    expect(await (await inbox.open(text.id)).text()).toBe("grüße");
    const json = await inbox.put({ a: [1, null, "x"] });
    expect(json).toMatchObject({ type: "application/json", name: "file" });
    expect(await (await inbox.open(json.id)).json()).toEqual({ a: [1, null, "x"] });
    expect(await (await inbox.open((await inbox.put(null)).id)).json()).toBeNull();
    const blob = await inbox.put(new Blob(["abc"], { type: "image/png" }));
    expect(blob).toMatchObject({ type: "image/png", size: 3 });
    const web = await inbox.put(Readable.toWeb(Readable.from([Buffer.from("de"), Buffer.from("f")])) as ReadableStream);
    expect(await (await inbox.open(web.id)).text()).toBe("def");
  });

  test("two puts of the same name are two parcels with ids of their own", async () => {
    const inbox = bench.hf.inbox(someone());
    const [one, two] = [await inbox.put("1", { name: "x" }), await inbox.put("2", { name: "x" })];
    expect(one.id).not.toBe(two.id);
    expect((await inbox.list()).parcels.map(({ id }) => id)).toEqual([one.id, two.id]);
  });

  test("expiry is 24 hours after the put unless the put says otherwise", async () => {
    const inbox = bench.hf.inbox(someone());
    const plain = await inbox.put("1");
    const short = await inbox.put("2", { ttl: "10m" });
    expect(plain.expiresAt.getTime() - plain.createdAt.getTime()).toBe(86_400_000);
    expect(short.expiresAt.getTime() - short.createdAt.getTime()).toBe(600_000);
    for (const ttl of ["0s", "31d", 5] as never[]) {
      expect(await caught(inbox.put("3", { ttl }))).toBeInstanceOf(OptionInvalid);
    }
  });

  test("meta, name and type are kept; the name and the type are made safe", async () => {
    const inbox = bench.hf.inbox(someone());
    const { id } = await inbox.put("x", { name: "../etc/pass wd", type: "Text/HTML; charset=x", meta: { chat: 5 } });
    expect(await inbox.get(id)).toMatchObject({ name: "pass_wd", type: "text/html", meta: { chat: 5 } });
  });

  test("empty content is refused, as bytes before anything is stored and as a stream when it ends", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    expect(await caught(inbox.put(Buffer.alloc(0)))).toBeInstanceOf(OptionInvalid);
    expect(await caught(inbox.put(""))).toBeInstanceOf(OptionInvalid);
    expect(await tablesOf(bench, recipient)).toMatchObject({ drafts: 0 });
    expect(await caught(inbox.put(Readable.from([])))).toBeInstanceOf(OptionInvalid);
    expect((await inbox.list()).parcels).toEqual([]);
  });

  test("one byte more than the cap is refused: announced at once, streamed when it gets there", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const bytes = someBytes(3 * CHUNK_BYTES + 11);
    expect(await caught(inbox.put(bytes))).toBeInstanceOf(TooLarge);
    expect(await tablesOf(bench, recipient)).toMatchObject({ drafts: 0 });
    let given = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        given += 65_536;
        yield Buffer.alloc(65_536);
      }
    }
    expect(await caught(inbox.put(endless()))).toBeInstanceOf(TooLarge);
    // It stopped reading, and did not wait for an end that never comes.
    expect(given).toBeLessThan(6 * CHUNK_BYTES);
    expect((await inbox.list()).parcels).toEqual([]);
  });

  test("options that cannot work are refused before anything is stored", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const wrong: object[] = [
      { name: "" },
      { type: 5 },
      { key: "" },
      { sha256: "abc" },
      { onExpired: { kind: "no good kind!" } },
      { nmae: "x" },
      { meta: { a: "\0" } },
    ];
    for (const options of wrong) expect(await caught(inbox.put("x", options)), JSON.stringify(options)).toBeTruthy();
    expect(await caught(inbox.put(undefined as never))).toBeInstanceOf(OptionInvalid);
    expect(await caught(inbox.put((() => 1) as never))).toBeInstanceOf(OptionInvalid);
    expect(await tablesOf(bench, recipient)).toEqual({ parcels: 0, drafts: 0, chunks: 0, orphans: 0 });
    for (const name of ["", "a b", "a/b", "-a", "ä", "x".repeat(201), null]) {
      expect(() => bench.hf.inbox(name as never), String(name)).toThrow(OptionInvalid);
    }
    expect(bench.hf.inbox("x".repeat(200)).recipient).toHaveLength(200);
  });

  test("a hash that was announced is compared, and content with another is not delivered", async () => {
    const inbox = bench.hf.inbox(someone());
    const bytes = someBytes(1_000);
    expect(await caught(inbox.put(bytes, { sha256: sha256(someBytes(5)) }))).toBeInstanceOf(ContentCorrupt);
    expect((await inbox.list()).parcels).toEqual([]);
    expect((await inbox.put(bytes, { sha256: sha256(bytes).toUpperCase() })).created).toBe(true);
  });

  test("a size that was announced is compared: a stream that ends early, or goes on, is not delivered", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const stream = () => Readable.from([Buffer.from("12345")]);
    for (const size of [4, 6]) {
      expect(await caught(inbox.put(stream(), { size }))).toBeInstanceOf(ContentCorrupt);
    }
    // Not even begun.
    const unread = stream();
    expect(await caught(inbox.put(unread, { size: 3 * CHUNK_BYTES + 11 }))).toBeInstanceOf(TooLarge);
    expect(unread.readableDidRead).toBe(false);
    expect((await inbox.list()).parcels).toEqual([]);
    expect((await inbox.put(stream(), { size: 5 })).size).toBe(5);
    expect(await caught(inbox.put(stream(), { size: 0.5 }))).toBeInstanceOf(OptionInvalid);
  });

  test("a put that breaks off is never seen, and what it left is removed", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    async function* breaking(): AsyncGenerator<Buffer> {
      yield someBytes(CHUNK_BYTES + 100);
      expect((await inbox.list()).parcels).toEqual([]);
      expect(await tablesOf(bench, recipient)).toMatchObject({ parcels: 0, drafts: 1, chunks: 1 });
      throw new Error("the connection was reset");
    }
    expect(await caught(inbox.put(breaking()))).toMatchObject({ message: "the connection was reset" });
    expect((await inbox.list()).parcels).toEqual([]);
    await expect
      .poll(async () => (await purge(bench), await tablesOf(bench, recipient)))
      .toEqual({
        parcels: 0,
        drafts: 0,
        chunks: 0,
        orphans: 0,
      });
  });

  test("several files are one put: in order, all or none", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const files = [someBytes(10), someBytes(CHUNK_BYTES + 1), someBytes(3)];
    const put = await inbox.putMany(files.map((content, n) => ({ content, name: `${n}.bin` })));
    expect(put.map(({ name, sha256: hash }) => [name, hash])).toEqual(files.map((f, n) => [`${n}.bin`, sha256(f)]));
    async function* breaking(): AsyncGenerator<Buffer> {
      yield Buffer.from("a");
      throw new Error("reset");
    }
    expect(await caught(inbox.putMany([{ content: "first" }, { content: breaking() }]))).toBeInstanceOf(Error);
    expect((await inbox.list()).parcels).toHaveLength(3);
    expect(await inbox.putMany([])).toEqual([]);
    const five = Array.from({ length: 5 }, () => ({ content: "x" }));
    expect(await caught(inbox.putMany(five))).toBeInstanceOf(OptionInvalid);
    expect(await inbox.putMany(five.slice(1))).toHaveLength(4);
  });

  test("a key is one parcel, however often it is put; other content under it is a conflict", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const first = await inbox.put("same", { key: "k" });
    expect(await inbox.put("same", { key: "k" })).toMatchObject({ id: first.id, created: false, conflict: false });
    expect(await inbox.put("other", { key: "k" })).toMatchObject({ id: first.id, created: false, conflict: true });
    expect(await bench.hf.inbox(someone()).put("other", { key: "k" })).toMatchObject({ created: true });
    const twice = await inbox.putMany([
      { content: "a", key: "twice" },
      { content: "b", key: "twice" },
    ]);
    expect(twice.map(({ created, conflict }) => [created, conflict])).toEqual([
      [true, false],
      [false, true],
    ]);
    const together = await Promise.all(Array.from({ length: 8 }, () => inbox.put("x", { key: "race" })));
    expect(new Set(together.map(({ id }) => id)).size).toBe(1);
    expect(together.filter(({ created }) => created)).toHaveLength(1);
    expect((await inbox.list()).parcels).toHaveLength(3);
    await purge(bench);
    expect(await tablesOf(bench, recipient)).toMatchObject({ parcels: 3, drafts: 0, chunks: 3 });
  });

  test("a draft that is discarded goes with the next purge, and cannot be put any more", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const [kept, gone] = [await inbox.draft("stays"), await inbox.draft("goes")];
    expect(await caught(bench.hf.inbox(someone()).discard([gone]))).toBeInstanceOf(OptionInvalid);
    await inbox.discard([gone]);
    expect(await purge(bench)).toMatchObject({ drafts: 1 });
    expect(await tablesOf(bench, recipient)).toMatchObject({ drafts: 1, chunks: 1 });
    expect(await caught(inbox.put(gone))).toMatchObject({ code: "HOLDFAST_STATE_CONFLICT" });
    expect(await inbox.put(kept)).toMatchObject({ created: true });
  });

  test("a draft is seen by nobody until it is put, once, into its own inbox", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const bytes = someBytes(CHUNK_BYTES * 2);
    const draft = await inbox.draft(Readable.from(inPieces(bytes)), { name: "big.bin" });
    expect((await inbox.list()).parcels).toEqual([]);
    expect(await caught(bench.hf.inbox(someone()).put(draft))).toBeInstanceOf(OptionInvalid);
    const parcel = await inbox.put(draft);
    expect(parcel).toMatchObject({ id: draft.id, size: bytes.length, name: "big.bin" });
    // The answer was lost and it was asked again: still one.
    expect(await inbox.put(draft)).toMatchObject({ id: draft.id, created: true });
    expect((await inbox.list()).parcels).toHaveLength(1);
  });

  test("a draft that was silent too long is gone, and putting it says so", async () => {
    const inbox = bench.hf.inbox(someone());
    const draft = await inbox.draft("content");
    await bench.hf.clock.advance("61m");
    expect(await purge(bench)).toMatchObject({ drafts: 1 });
    expect(await caught(inbox.put(draft))).toBeInstanceOf(StateConflict);
    expect((await inbox.list()).parcels).toEqual([]);
  });

  test("content that lost a chunk is not delivered", async () => {
    const inbox = bench.hf.inbox(someone());
    const draft = await inbox.draft(someBytes(2 * CHUNK_BYTES));
    await bench.db.query(`delete from "${bench.store.schema}".parcel_chunks where parcel_id = $1 and n = 1`, [
      draft.id,
    ]);
    expect(await caught(inbox.put(draft))).toBeInstanceOf(StateConflict);
    expect((await inbox.list()).parcels).toEqual([]);
  });

  test("files, the caller's own rows and jobs commit together, or none of them does", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const kind = makeKind();
    const bytes = someBytes(CHUNK_BYTES + 5);
    const table = `own_${recipient.replaceAll(".", "_")}`;
    await bench.db.query(`create table ${table} (note text)`);
    const draft = await inbox.draft(bytes, { name: "drafted" });
    const work = (fail: boolean) =>
      bench.db.transaction(async (tx) => {
        const client = { query: (text: string, values: unknown[] = []) => tx.query<object>(text, values) };
        await tx.query(`insert into ${table} values ('message')`);
        const parcels = await inbox.putMany(
          [{ content: Readable.from(inPieces(bytes)), name: "streamed" }, { content: "small", name: "small" }, draft],
          { tx: client },
        );
        await bench.hf.enqueue(kind, null, { tx: client });
        if (fail) throw new Error("no");
        return parcels;
      });
    const count = async (): Promise<number> => (await bench.db.query(`select 1 from ${table}`)).rows.length;

    await caught(work(true));
    expect([await count(), (await inbox.list()).parcels.length]).toEqual([0, 0]);
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toEqual([]);
    // What was drafted before is still there; what was streamed inside is not.
    expect(await tablesOf(bench, recipient)).toMatchObject({ drafts: 1, chunks: 2 });

    const parcels = await work(false);
    expect([await count(), (await inbox.list()).parcels.length]).toEqual([1, 3]);
    expect((await bench.hf.jobs.list({ kind: kind.kind })).jobs).toHaveLength(1);
    expect(parcels.map(({ name }) => name)).toEqual(["streamed", "small", "drafted"]);
    for (const { id, name } of parcels) {
      const got = await collect((await inbox.open(id)).stream());
      expect(got.equals(name === "small" ? Buffer.from("small") : bytes)).toBe(true);
    }
  });
});

describe.each(TIERS)("quota on the %s tier", (tier) => {
  const bench = useHoldfast(tier, { inbox: { quotaBytes: 1_000, quotaParcels: 3 } });

  test("bytes and parcels are bounded per recipient, and an ack makes room", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const first = await inbox.put(someBytes(600));
    expect(await caught(inbox.put(someBytes(401)))).toBeInstanceOf(QuotaExceeded);
    // Its size was known: nothing was even begun.
    expect(await tablesOf(bench, recipient)).toMatchObject({ drafts: 0 });
    expect(await caught(inbox.put(Readable.from([someBytes(401)])))).toBeInstanceOf(QuotaExceeded);
    await inbox.put(someBytes(400));
    expect(await caught(inbox.put("x"))).toBeInstanceOf(QuotaExceeded);
    expect((await bench.hf.inbox(someone()).put("x")).created).toBe(true);
    await inbox.ack(first.id);
    await inbox.put("x");
    await inbox.put("y");
    expect(await caught(inbox.put("z"))).toMatchObject({
      message: expect.stringContaining("3 of 3 parcels") as string,
    });
  });

  test("deliveries at the same time do not exceed it together", async () => {
    for (let round = 0; round < 10; round += 1) {
      const inbox = bench.hf.inbox(someone());
      const drafts = [];
      for (let n = 0; n < 3; n += 1) drafts.push(await inbox.draft(Readable.from([someBytes(400)])));
      const put = await Promise.allSettled(drafts.map((draft) => inbox.put(draft)));
      expect(put.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    }
  });

  test("puts at the same time do not exceed it together", async () => {
    const inbox = bench.hf.inbox(someone());
    const put = await Promise.allSettled(Array.from({ length: 12 }, () => inbox.put(Readable.from([someBytes(300)]))));
    expect(put.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(3);
    expect((await inbox.stats()).bytes).toBeLessThanOrEqual(1_000);
    expect((await inbox.list()).parcels.length).toBeGreaterThan(0);
  });

  test("a put that is refused for all its files stores none of them", async () => {
    const recipient = someone();
    const inbox = bench.hf.inbox(recipient);
    const files = Array.from({ length: 4 }, () => ({ content: "x" }));
    expect(await caught(inbox.putMany(files))).toBeInstanceOf(QuotaExceeded);
    expect((await inbox.list()).parcels).toEqual([]);
    await expect.poll(async () => (await purge(bench), await tablesOf(bench, recipient))).toMatchObject({ drafts: 0 });
  });
});
