// What every Db promises (src/db/db.ts), as one suite for both tiers. A tier that cannot keep a section names it in
// `skip`, with the reason: the report shows it.
import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Db, Queryable } from "#src/db/db.js";
import { Closed, DatabaseUnavailable, OptionInvalid } from "#src/errors.js";

export interface OpenDb {
  db: Db;
  /** Closes `db` if the test did not, and removes what openDb made. */
  cleanup(): Promise<void>;
}

export type Section =
  "types" | "rows" | "transactions" | "errors" | "scripts" | "notifications" | "timeouts" | "closing";

export interface ContractOptions {
  skip?: Partial<Record<Section, string>>;
}

const ODD_CHANNELS = ['we"ird-Channel', "Grüße; drop table x", "a b", "'quoted'", "SELECT", "x".repeat(63)];

export function dbContract(name: string, openDb: () => Promise<OpenDb>, { skip = {} }: ContractOptions = {}): void {
  for (const [id, reason] of Object.entries(skip)) {
    if (!reason.trim()) throw new Error(`The contract of ${name} skips "${id}" without a reason.`);
  }

  function section(id: Section, body: () => void): void {
    const reason = skip[id];
    if (reason === undefined) describe(id, body);
    else describe.skip(`${id} (skipped: ${reason})`, body);
  }

  describe(`Db contract: ${name}`, () => {
    let opened: OpenDb;
    let db: Db;

    beforeAll(async () => {
      opened = await openDb();
      db = opened.db;
    });
    afterAll(() => opened.cleanup());

    async function valueOf(expression: string, values?: readonly unknown[]): Promise<unknown> {
      const { rows } = await db.query<{ value: unknown }>(`select ${expression} as value`, values);
      return rows[0]?.value;
    }

    async function noteIds(): Promise<number[]> {
      const { rows } = await db.query<{ id: number }>("select id from note order by id");
      return rows.map(({ id }) => id);
    }

    section("types", () => {
      test.each<[string, unknown]>([
        ["9007199254740993::int8", "9007199254740993"],
        ["(-9223372036854775808)::int8", "-9223372036854775808"],
        ["7::int2", 7],
        ["(-2147483648)::int4", -2147483648],
        ["count(*)", "1"],
        ["0.1::float8", 0.1],
        ["'-Infinity'::float8", -Infinity],
        ["1.10::numeric", "1.10"],
        ["true", true],
        ["'x'::text = 'y'", false],
        ["'0190b5b0-0000-7000-8000-000000000001'::uuid", "0190b5b0-0000-7000-8000-000000000001"],
        ["'2026-11-16 03:35:32.123456+00'::timestamptz", new Date("2026-11-16T03:35:32.123Z")],
        ["'2026-07-01 12:00:00+05:30'::timestamptz", new Date("2026-07-01T06:30:00Z")],
        ["'0044-03-15 12:00:00+00'::timestamptz", new Date("0044-03-15T12:00:00Z")],
        [`'{"a": [1, null, "ü"]}'::jsonb`, { a: [1, null, "ü"] }],
        ["'[1, 2]'::json", [1, 2]],
        ["'null'::jsonb", null],
        ["'\"text\"'::jsonb", "text"],
        ["array['a', null, 'b,\"c']::text[]", ["a", null, 'b,"c']],
        ["array[1, 2]::int4[]", [1, 2]],
        ["array[9007199254740993]::int8[]", ["9007199254740993"]],
        ["array['0190b5b0-0000-7000-8000-000000000001']::uuid[]", ["0190b5b0-0000-7000-8000-000000000001"]],
        ["'{}'::text[]", []],
        ["null::int8", null],
        ["null::timestamptz", null],
        ["null::jsonb", null],
        ["null::text[]", null],
      ])("%s", async (expression, expected) => {
        expect(await valueOf(expression)).toEqual(expected);
      });

      test("timestamptz comes back as it was sent, to the millisecond", async () => {
        const at = new Date("2031-02-03T04:05:06.789Z");
        expect(await valueOf("$1::timestamptz", [at])).toEqual(at);
        expect(await valueOf("extract(epoch from $1::timestamptz)::text", [at])).toBe(`${at.getTime() / 1000}000`);
      });

      test("null, undefined and empty text are told apart", async () => {
        expect(await valueOf("$1::text", [null])).toBeNull();
        expect(await valueOf("$1::text", [undefined])).toBeNull();
        expect(await valueOf("$1::text", [""])).toBe("");
      });

      test("arrays and bigints as parameters", async () => {
        const ids = [randomUUID(), randomUUID()];
        expect(await valueOf("$1::uuid[]", [ids])).toEqual(ids);
        const texts = ["plain", "", 'q"uote', "back\\slash", "com,ma", "{brace}", "NULL", "null", "ü😀"];
        expect(await valueOf("$1::text[]", [texts])).toEqual(texts);
        expect(await valueOf("$1::bigint", [2n ** 62n])).toBe((2n ** 62n).toString());
        expect(await valueOf("$1::bigint[]", [[1n, -(2n ** 63n)]])).toEqual(["1", (-(2n ** 63n)).toString()]);
        expect(await valueOf("$1::bigint[]", [["1", "9223372036854775807"]])).toEqual(["1", "9223372036854775807"]);
        expect(await valueOf("$1::int[]", [[]])).toEqual([]);
        expect(await valueOf("$1::uuid = any($2::uuid[])", [ids[1], ids])).toBe(true);
      });

      test("numbers and booleans as parameters", async () => {
        expect(await valueOf("$1::int", [42])).toBe(42);
        expect(await valueOf("$1::float8", [0.1])).toBe(0.1);
        expect(await valueOf("$1::boolean", [false])).toBe(false);
      });

      test("bytes go in and come out", async () => {
        const bytes = randomBytes(100_000);
        bytes.set([0, 92, 255, 39]);
        const { rows } = await db.query<{ back: Uint8Array; empty: Uint8Array }>(
          "select $1::bytea as back, ''::bytea as empty",
          [bytes],
        );
        expect(Buffer.from(rows[0]!.back).equals(bytes)).toBe(true);
        expect(rows[0]!.empty).toHaveLength(0);
      });

      test("a large jsonb keeps everything", async () => {
        const big = Array.from({ length: 20_000 }, (_, index) => ({ index, text: `line ${index} – ünï "q" \\ 😀` }));
        expect(await valueOf("$1::jsonb", [JSON.stringify(big)])).toEqual(big);
      });

      test("unicode in statements, values and column names", async () => {
        const { rows } = await db.query('select $1::text as "naïve 列", \'𝄞 é\' as "q""q"', ["日本語 \u2028 😀"]);
        expect(rows).toEqual([{ "naïve 列": "日本語 \u2028 😀", 'q"q': "𝄞 é" }]);
      });
    });

    section("rows", () => {
      beforeEach(() => db.script("drop table if exists fruit; create table fruit (id int primary key, name text)"));

      test("rowCount counts what was returned or changed", async () => {
        const insert = await db.query("insert into fruit select n, 'f' || n from generate_series(1, 5) n");
        expect(insert).toMatchObject({ rows: [], rowCount: 5 });
        expect((await db.query("update fruit set name = 'x' where id > $1", [3])).rowCount).toBe(2);
        expect((await db.query("update fruit set name = 'x' where id > $1", [99])).rowCount).toBe(0);
        const returned = await db.query<{ id: number }>("delete from fruit where id < $1 returning id", [3]);
        expect(returned).toMatchObject({ rows: [{ id: 1 }, { id: 2 }], rowCount: 2 });
        expect((await db.query("select * from fruit")).rowCount).toBe(3);
        expect(await db.query("select * from fruit where false")).toMatchObject({ rows: [], rowCount: 0 });
      });

      test("a statement without rows has rowCount 0", async () => {
        expect(await db.query("create table if not exists fruit (id int)")).toMatchObject({ rows: [], rowCount: 0 });
      });

      test("query takes one statement only, with values or without", async () => {
        const two = "insert into fruit values (1, 'a'); insert into fruit values (2, 'b')";
        await expect(db.query(two)).rejects.toMatchObject({ code: "42601" });
        await expect(db.query(two, [])).rejects.toMatchObject({ code: "42601" });
        expect((await db.query("select * from fruit")).rowCount).toBe(0);
      });

      test("many calls at once all get their own answer", async () => {
        const answers = await Promise.all(
          Array.from({ length: 200 }, (_, n) => db.query<{ n: number }>("select $1::int as n", [n])),
        );
        expect(answers.map(({ rows }) => rows[0]?.n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
      });
    });

    section("transactions", () => {
      beforeEach(() => db.script("drop table if exists note; create table note (id int primary key, who text)"));
      test("commits, and returns what the work returned", async () => {
        const result = await db.transaction(async (tx) => {
          await addNote(tx, 1);
          await addNote(tx, 2);
          return "done";
        });
        expect(result).toBe("done");
        expect(await noteIds()).toEqual([1, 2]);
      });

      test("rolls back when the work throws, and throws the same thing", async () => {
        const thrown = new Error("mine");
        const failing = db.transaction(async (tx) => {
          await addNote(tx, 1);
          throw thrown;
        });
        await expect(failing).rejects.toBe(thrown);
        expect(await noteIds()).toEqual([]);
      });

      test("rolls back when a statement fails", async () => {
        const failing = db.transaction(async (tx) => {
          await addNote(tx, 1);
          await addNote(tx, 1);
        });
        await expect(failing).rejects.toMatchObject({ code: "23505" });
        expect(await noteIds()).toEqual([]);
      });

      test("a statement's error that the work swallowed still fails the transaction", async () => {
        const later: unknown[] = [];
        const failing = db.transaction(async (tx) => {
          await addNote(tx, 1);
          await addNote(tx, 1).catch(() => {});
          await addNote(tx, 2).catch((error: unknown) => later.push(error));
          return "looks fine";
        });
        await expect(failing).rejects.toMatchObject({ code: "23505" });
        expect(later).toMatchObject([{ code: "25P02" }]);
        expect(await noteIds()).toEqual([]);
      });

      test("a savepoint rescues the rest", async () => {
        await db.transaction(async (tx) => {
          await addNote(tx, 1);
          await tx.query("savepoint here");
          await expect(addNote(tx, 1)).rejects.toMatchObject({ code: "23505" });
          await tx.query("rollback to savepoint here");
          await addNote(tx, 2);
        });
        expect(await noteIds()).toEqual([1, 2]);
      });

      test("an error at COMMIT is an error of the transaction", async () => {
        await db.script(`drop table if exists child;
          create table child (id int references note (id) deferrable initially deferred)`);
        const failing = db.transaction((tx) => tx.query("insert into child values (9)"));
        await expect(failing).rejects.toMatchObject({ code: "23503" });
        await db.script("drop table child");
      });

      test("statements that were not waited for are part of it, in order", async () => {
        await db.transaction(async (tx) => {
          await Promise.all([1, 2, 3, 4, 5].map((id) => addNote(tx, id)));
          void addNote(tx, 6);
        });
        expect(await noteIds()).toEqual([1, 2, 3, 4, 5, 6]);
      });

      test("a statement after the end is refused", async () => {
        let leaked: Queryable | undefined;
        await db.transaction(async (tx) => {
          leaked = tx;
        });
        await expect(addNote(leaked!, 1)).rejects.toBeInstanceOf(Closed);
        expect(await noteIds()).toEqual([]);
      });

      test("concurrent transactions do not mix", async () => {
        const run = (who: string, base: number, fail: boolean): Promise<void> =>
          db.transaction(async (tx) => {
            for (let n = 0; n < 5; n += 1) {
              await addNote(tx, base + n, who);
              const seen = await tx.query<{ who: string }>(
                "select distinct who from note where id between 100 and 999",
              );
              expect(seen.rows).toContainEqual({ who });
            }
            if (fail) throw new Error("no");
          });
        const outcomes = await Promise.allSettled(
          Array.from({ length: 8 }, (_, n) => run(`w${n}`, 100 + n * 10, n % 2 === 1)),
        );
        expect(outcomes.map(({ status }) => status)).toEqual(
          Array.from({ length: 8 }, (_, n) => (n % 2 === 1 ? "rejected" : "fulfilled")),
        );
        const kept = await db.query<{ who: string }>("select who, count(*) from note group by who order by who");
        expect(kept.rows).toEqual([0, 2, 4, 6].map((n) => ({ who: `w${n}`, count: "5" })));
      });
    });

    section("errors", () => {
      beforeEach(() => db.script("drop table if exists thing; create table thing (id int primary key)"));

      test.each<[string, string, readonly unknown[]]>([
        ["23505", "insert into thing select 1 from generate_series(1, 2)", []],
        ["42P01", "select * from nothing_here", []],
        ["22P02", "select $1::int", ["abc"]],
        ["42601", "selekt 1", []],
        ["22012", "select 1 / 0", []],
        ["22P05", "select $1::jsonb", ['"\\u0000"']],
      ])("SQLSTATE %s: %s", async (code, text, values) => {
        await expect(db.query(text, values)).rejects.toMatchObject({ code });
        await expect(db.query(text, values)).rejects.toBeInstanceOf(Error);
        expect(await valueOf("1")).toBe(1);
      });

      test("an error in one call does not touch its neighbours", async () => {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? db.query("select 1 / 0") : valueOf("$1::int", [n]))),
        );
        for (const [n, outcome] of outcomes.entries()) {
          if (n % 3 === 0) expect(outcome).toMatchObject({ status: "rejected", reason: { code: "22012" } });
          else expect(outcome).toEqual({ status: "fulfilled", value: n });
        }
      });

      test("a value that cannot be sent fails its own call only", async () => {
        const circular: Record<string, unknown> = {};
        circular["self"] = circular;
        await expect(db.query("select $1::jsonb, $2::text", [circular, "x"])).rejects.toThrow();
        expect(await valueOf("$1::text", ["next"])).toBe("next");
      });

      test("the wrong number of values is the caller's error, not an outage", async () => {
        const error: unknown = await db.query("select $1::int, $2::int", [1]).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(Error);
        expect(error).not.toBeInstanceOf(DatabaseUnavailable);
        expect(await valueOf("1")).toBe(1);
      });
    });

    section("scripts", () => {
      test("runs several statements", async () => {
        await db.script(`
          drop table if exists scripted; -- a comment; with a semicolon
          create table scripted (id int, body text);
          create or replace function scripted_count() returns bigint language sql as $$ select count(*) from scripted; $$;
          insert into scripted values (1, 'a;b'), (2, 'c');
        `);
        expect(await valueOf("scripted_count()")).toBe("2");
      });

      test("is all or nothing, and says why", async () => {
        await db.script("drop table if exists scripted2; create table scripted2 (id int primary key)");
        const failing = db.script("insert into scripted2 values (1); insert into scripted2 values (1)");
        await expect(failing).rejects.toMatchObject({ code: "23505" });
        expect(await valueOf("(select count(*) from scripted2)")).toBe("0");
      });

      test("a script that fails or stops inside its own transaction leaves nothing open", async () => {
        await db.script("drop table if exists scripted3; create table scripted3 (id int primary key)");
        await expect(db.script("begin; insert into scripted3 values (1); select 1 / 0; commit")).rejects.toMatchObject({
          code: "22012",
        });
        await expect(db.script("begin; insert into scripted3 values (2)")).rejects.toBeInstanceOf(OptionInvalid);
        for (let n = 0; n < 12; n += 1) await db.query("insert into scripted3 values ($1)", [100 + n]);
        expect(await valueOf("(select count(*) from scripted3)")).toBe("12");
      });
    });

    section("notifications", () => {
      test.each(ODD_CHANNELS)("round trip on %s", async (channel) => {
        const inbox = makeInbox();
        const listener = await db.listen(channel, { onMessage: inbox.put });
        const payloads = ["one", "", "ünï 😀 'q' \"d\"", "x".repeat(7_900)];
        for (const payload of payloads) await db.notify(channel, payload);
        expect(await inbox.take(payloads.length)).toEqual(payloads);
        await listener.close();
      });

      test("onReady comes before listen() resolves, and only messages of the channel arrive", async () => {
        const inbox = makeInbox();
        let ready = 0;
        const listener = await db.listen("mine", { onMessage: inbox.put, onReady: () => (ready += 1) });
        expect(ready).toBe(1);
        await db.notify("other", "not mine");
        await db.notify("MINE", "not mine either");
        await db.notify("mine", "mine");
        expect(await inbox.take(1)).toEqual(["mine"]);
        await listener.close();
      });

      test("a NOTIFY in a transaction arrives with its commit, or never", async () => {
        const inbox = makeInbox();
        const listener = await db.listen("later", { onMessage: inbox.put });
        const undone = db.transaction(async (tx) => {
          await tx.query("select pg_notify('later', 'undone')");
          throw new Error("no");
        });
        await expect(undone).rejects.toThrow("no");
        await db.transaction((tx) => tx.query("select pg_notify('later', 'kept')"));
        expect(await inbox.take(1)).toEqual(["kept"]);
        await listener.close();
      });

      test("nothing arrives after close(), which may be called twice", async () => {
        const inbox = makeInbox();
        const deaf = await db.listen("gone", { onMessage: () => inbox.put("deaf") });
        await deaf.close();
        await deaf.close();
        const listener = await db.listen("gone", { onMessage: inbox.put });
        await db.notify("gone", "heard");
        expect(await inbox.take(1)).toEqual(["heard"]);
        await listener.close();
      });

      test("a handler that throws harms nobody", async () => {
        const inbox = makeInbox();
        const listener = await db.listen("rude", {
          onMessage(payload) {
            inbox.put(payload);
            throw new Error("handler");
          },
        });
        await db.notify("rude", "1");
        await db.notify("rude", "2");
        expect(await inbox.take(2)).toEqual(["1", "2"]);
        await listener.close();
      });

      test("a channel name that PostgreSQL would cut off is refused", async () => {
        const handlers = { onMessage: (): void => {} };
        await expect(db.listen("x".repeat(64), handlers)).rejects.toBeInstanceOf(OptionInvalid);
        await expect(db.listen("", handlers)).rejects.toBeInstanceOf(OptionInvalid);
      });
    });

    section("timeouts", () => {
      test("a call that takes too long fails in time, and the next one works", async () => {
        const startedAt = performance.now();
        const slow = db.query("select pg_sleep(20)", [], { timeoutMs: 300 });
        await expect(slow).rejects.toBeInstanceOf(DatabaseUnavailable);
        expect(performance.now() - startedAt).toBeLessThan(1_300);
        expect(await valueOf("1")).toBe(1);
      });

      test("so does a script, and a statement in a transaction, whose later statements fail at once", async () => {
        await expect(db.script("select pg_sleep(20)", { timeoutMs: 300 })).rejects.toBeInstanceOf(DatabaseUnavailable);
        const transaction = db.transaction(
          async (tx) => {
            await expect(tx.query("select pg_sleep(20)")).rejects.toBeInstanceOf(DatabaseUnavailable);
            const startedAt = performance.now();
            await expect(tx.query("select 1")).rejects.toBeInstanceOf(DatabaseUnavailable);
            expect(performance.now() - startedAt).toBeLessThan(100);
          },
          { timeoutMs: 300 },
        );
        await expect(transaction).rejects.toBeInstanceOf(DatabaseUnavailable);
        expect(await valueOf("1")).toBe(1);
      });

      test("an answer that came while this process was busy counts", async () => {
        const quick = db.query<{ n: number }>("select 1 as n", [], { timeoutMs: 100 });
        await new Promise(setImmediate);
        const until = performance.now() + 400;
        while (performance.now() < until);
        expect((await quick).rows).toEqual([{ n: 1 }]);
      });

      test("a timeout that is no number of milliseconds is refused", async () => {
        for (const timeoutMs of [0, -1, Number.NaN, Infinity]) {
          await expect(db.query("select 1", [], { timeoutMs })).rejects.toBeInstanceOf(OptionInvalid);
        }
      });
    });

    section("closing", () => {
      test("waits for calls under way, may be called twice, and refuses what comes later", async () => {
        const other = await openDb();
        const own = other.db;
        const underWay = own.query<{ n: number }>("select 7 as n");
        await Promise.all([own.close(), own.close()]);
        await own.close();
        expect((await underWay).rows).toEqual([{ n: 7 }]);
        await expect(own.query("select 1")).rejects.toBeInstanceOf(Closed);
        await expect(own.script("select 1")).rejects.toBeInstanceOf(Closed);
        await expect(own.transaction(async () => 1)).rejects.toBeInstanceOf(Closed);
        await expect(own.notify("c", "p")).rejects.toBeInstanceOf(Closed);
        await expect(own.listen("c", { onMessage: () => {} })).rejects.toBeInstanceOf(Closed);
        await other.cleanup();
      });
    });
  });
}

function addNote(to: Queryable, id: number, who = ""): Promise<unknown> {
  return to.query("insert into note values ($1, $2)", [id, who]);
}

interface Inbox {
  put: (payload: string) => void;
  /** The first `count`, once they are there, and no more than those. */
  take(count: number): Promise<string[]>;
}

function makeInbox(): Inbox {
  const payloads: string[] = [];
  let changed: (() => void) | undefined;
  return {
    put(payload) {
      payloads.push(payload);
      changed?.();
    },
    take(count) {
      return new Promise((resolve) => {
        changed = () => {
          if (payloads.length >= count) resolve(payloads);
        };
        changed();
      });
    },
  };
}
