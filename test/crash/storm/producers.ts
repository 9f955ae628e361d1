// What is asked for during a storm: single enqueues, many at once, in callers' own transactions, with keys (again and
// again when the answer is unknown), in groups, later, with priorities, under coalescing keys, from SQL, things that are refused, cancels,
// batches, and parcels.
// A recipient of the parcels is here as well: it takes in whatever arrives, and says what.
// Each is in the history before it is sent.
import { createHash } from "node:crypto";
import { Client } from "pg";
import { defineBatch, defineJob, type Enqueued, type EnqueueOptions, type Holdfast } from "#src/index.js";
import { quoteSchema } from "#src/shared/quote-schema.js";
import { AFTER_DEATH, BRIEF, NEWEST } from "../../support/history/facts.ts";
import type { Asked, History } from "../../support/history/record.ts";
import type { Random } from "../../support/random.ts";

/** Only enqueued here: the handlers are the workers'. */
const work = defineJob("storm.work", { attempts: 4, run: () => undefined });
const loop = defineJob("storm.loop", { attempts: 2, run: () => undefined });
const brief = defineJob(BRIEF, { attempts: 4, run: () => undefined });
const light = defineJob("storm.light", { attempts: 4, run: () => undefined });
const newest = defineJob(NEWEST, { attempts: 4, run: () => undefined });
const batch = defineBatch<unknown, unknown, "saved">("storm.batch", {
  concurrency: 20,
  attempts: 4,
  outcomes: { saved: {} },
  run: () => undefined,
});

export interface ProducersInput {
  hf: Holdfast;
  history: History;
  random: Random;
  callerUrl: string;
  loops: number;
  /** Jobs that may wait. */
  backlog: number;
  batches: boolean;
  /** The share of jobs that run for longer than their lease. */
  long: number;
  schema: string;
  waiting(): Promise<number>;
}

export interface Producers {
  start(): void;
  /** A job with this payload, beside what the producers think of themselves. */
  add(asked: Omit<Asked, "n">, payload?: object): Promise<void>;
  /** So many, one after the other, each of which must be ok: for the time after the last fault. */
  tail(count: number): Promise<void>;
  stop(): Promise<void>;
  /** The recipient goes on until then. */
  close(): Promise<void>;
  readonly asked: number;
}

interface Wanted {
  asked: Asked;
  kind: typeof work;
  payload: object;
  options: EnqueueOptions;
}

/** And as much again in three chunks: with a lease of a second, several beats. */
const LONG_MS = 1_200;
/** Of these one takes its process from all others for a second or two. */
const SPINS = 0.003;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export function makeProducers(input: ProducersInput): Producers {
  const { hf, history, random } = input;
  let last = 0;
  let isOver = false;
  let isFull = false;
  let loops: Promise<unknown>[] = [];
  const keyed: Wanted[] = [];
  const ids: { n: number; id: string }[] = [];

  function want(more: Partial<Asked> = {}, extra: object = {}): Wanted {
    const n = (last += 1);
    const asked: Asked = { n, ...more };
    const options: EnqueueOptions = {};
    const lot = random();
    if (lot < 0.35) asked.light = true;
    else if (lot < 0.55) asked.effect = "complete";
    else if (lot < 0.65) asked.effect = "step";
    else if (lot < 0.72) {
      asked.effect = "chunks";
      asked.items = 12;
    }
    if (lot >= 0.95) asked.brief = true;
    else if (!asked.light && random.chance(0.12)) asked.fail = random.whole(1, 2);
    else if (!asked.light && random.chance(0.01)) asked.fatal = true;
    if (!asked.brief && random.chance(0.25)) {
      asked.key = `k${n}`;
      options.key = asked.key;
    }
    if (asked.fatal && random.chance(0.6)) {
      asked.onDead = true;
      options.onDead = { kind: AFTER_DEATH };
    }
    if (!asked.light && random.chance(0.05)) asked.snooze = true;
    if (asked.effect === "chunks" && !asked.brief && random.chance(input.long)) asked.long = true;
    if (random.chance(0.1)) options.priority = random.whole(-3, 3);
    if (random.chance(0.1)) options.delay = `${random.whole(1, 400)}ms`;
    if (!asked.light && random.chance(0.1)) options.group = asked.group = `g${random.whole(0, 9)}`;
    const payload = {
      ...asked,
      ...(asked.light || random.chance(0.3) ? {} : { ms: random.whole(1, 40) }),
      ...(asked.long ? { ms: LONG_MS } : {}),
      ...(asked.snooze ? { until: Date.now() + random.whole(50, 600) } : {}),
      ...(random.chance(0.1) ? { stubborn: true } : {}),
      // It computes for longer than its lease, and nothing else happens in its process meanwhile.
      ...(!asked.light && random.chance(SPINS) ? { spin: random.whole(1_200, 2_200) } : {}),
      ...extra,
    };
    return { asked, kind: asked.light ? light : asked.brief ? brief : work, payload, options };
  }

  /** True: the answer is known. */
  async function tell(
    wanted: Wanted[],
    send: () => Promise<{ id: string; created: boolean; conflict: boolean }[]>,
  ): Promise<boolean> {
    const op = history.asked(
      "enqueue",
      wanted.map(({ asked }) => asked),
    );
    try {
      const answers = await send();
      history.ok(op, {
        ids: answers.map(({ id }) => id),
        created: answers.map(({ created }) => created),
        conflict: answers.map(({ conflict }) => conflict),
      });
      for (const [index, { id }] of answers.entries()) ids.push({ n: wanted[index]!.asked.n, id });
      if (ids.length > 2_000) ids.splice(0, 1_000);
      return true;
    } catch (error) {
      const isRefused = error instanceof NotCommitted || isOptionInvalid(error);
      history.notOk(op, isRefused ? "failed" : "unknown", error);
      return isRefused;
    }
  }

  /** One enqueue; under a key it is asked again until the answer is known. */
  async function one(wanted = want()): Promise<void> {
    const { kind, payload, options, asked } = wanted;
    if (asked.key !== undefined) {
      keyed.push(wanted);
      if (keyed.length > 500) keyed.splice(0, 250);
    }
    while (!(await tell([wanted], async () => [await hf.enqueue(kind, payload, options)])) && asked.key !== undefined) {
      if (isOver) return;
      await sleep(random.whole(10, 100));
    }
  }

  /** One that surely dies, and is followed. */
  async function doomed(): Promise<void> {
    const n = (last += 1);
    const asked: Asked = { n, key: `k${n}`, fatal: true, onDead: true };
    await one({ asked, kind: work, payload: asked, options: { key: `k${n}`, onDead: { kind: AFTER_DEATH } } });
  }

  async function many(): Promise<void> {
    // Very many that are alike are sent by COPY.
    const isCopy = random.chance(0.06);
    const wanted = Array.from({ length: isCopy ? random.whole(200, 300) : random.whole(5, 80) }, () => {
      const n = (last += 1);
      const asked: Asked = { n, light: true, ...(!isCopy && random.chance(0.2) ? { key: `k${n}` } : {}) };
      return { asked, kind: light, payload: { n }, options: asked.key === undefined ? {} : { key: asked.key } };
    });
    await tell(wanted, () =>
      hf.enqueueMany(
        light,
        wanted.map(({ payload, options }) => ({ payload, ...options })),
      ),
    );
  }

  /** In a transaction of the caller's own: when COMMIT gets no answer, nobody knows. */
  async function inTransaction(): Promise<void> {
    const wanted = want();
    const client = new Client({
      connectionString: input.callerUrl,
      connectionTimeoutMillis: 1_000,
      query_timeout: 2_000,
    });
    client.on("error", () => {});
    await tell([wanted], async () => {
      // Not waited for: a goodbye over a dead connection takes for ever.
      const leave = (): void => void client.end().catch(() => {});
      let answer: Enqueued;
      try {
        await client.connect();
        await client.query("begin");
        answer = random.chance(0.3)
          ? await fromSql(client, wanted)
          : await hf.enqueue(wanted.kind, wanted.payload, { ...wanted.options, tx: client });
        if (random.chance(0.2)) {
          await client.query("rollback");
          throw new Error("rolled back");
        }
      } catch (error) {
        leave();
        throw new NotCommitted("nothing was committed", { cause: error });
      }
      try {
        await client.query("commit");
        return [answer];
      } finally {
        leave();
      }
    });
  }

  /** As a trigger or a program in another language does it. */
  async function fromSql(client: Client, { kind, payload, options }: Wanted): Promise<Enqueued> {
    const { rows } = await client.query<Enqueued>(
      `select id, created, conflict, coalesced from ${quoteSchema(input.schema)}.enqueue($1, $2::jsonb, key => $3, group_key => $4,
         delay => $5::interval, priority => $6, attempts => 4, on_dead => $7::jsonb)`,
      [
        kind.kind,
        JSON.stringify(payload),
        options.key ?? null,
        options.group ?? null,
        options.delay === undefined ? null : options.delay.replace("ms", " milliseconds"),
        options.priority ?? 0,
        options.onDead === undefined ? null : JSON.stringify(options.onDead),
      ],
    );
    return rows[0]!;
  }

  /** Under one of a few coalescing keys, of which most are open at any time. */
  async function coalesced(): Promise<void> {
    const n = (last += 1);
    const coalesce = `c${random.whole(0, 5)}`;
    const op = history.asked("coalesce", [{ n, coalesce }]);
    try {
      const { id, created } = await hf.enqueue(newest, { n, ms: random.whole(0, 300) }, { coalesce });
      history.ok(op, { ids: [id], created: [created] });
    } catch (error) {
      history.notOk(op, "unknown", error);
    }
  }

  async function again(): Promise<void> {
    const wanted = keyed.length > 0 ? random.pick(keyed) : undefined;
    if (!wanted) return;
    const isOther = random.chance(0.3);
    const asked: Asked = isOther ? { ...wanted.asked, other: true } : wanted.asked;
    const payload = isOther ? { ...wanted.payload, other: true } : wanted.payload;
    await tell([{ ...wanted, asked, payload }], async () => [await hf.enqueue(wanted.kind, payload, wanted.options)]);
  }

  async function refused(): Promise<void> {
    const wanted = want();
    const { key: _, ...asked } = wanted.asked;
    await tell([{ ...wanted, asked }], async () => [await hf.enqueue(work, { ...wanted.payload, no: 1n }, {})]);
  }

  async function cancel(): Promise<void> {
    const found = ids.length > 0 ? random.pick(ids) : undefined;
    if (!found) return;
    const op = history.asked("cancel", [{ n: found.n }]);
    try {
      await hf.jobs.cancel(found.id);
      history.ok(op, { ids: [found.id] });
    } catch (error) {
      history.notOk(op, isUnavailable(error) ? "unknown" : "failed", error);
    }
  }

  async function makeBatch(): Promise<void> {
    const n = (last += 1);
    const key = `b${n}`;
    const items = Array.from({ length: random.whole(20, 120) }, (_, at) => ({
      ms: random.whole(0, 10),
      ...(at % 17 === 0 ? { fail: 1 } : {}),
    }));
    const fail = items.filter((item) => "fail" in item).length;
    for (;;) {
      const op = history.asked("batch", [{ n, key, items: items.length, fail }]);
      try {
        const { id } = await hf.batches.create(batch, items, { key, onDone: { kind: "storm.after" } });
        return history.ok(op, { ids: [id] });
      } catch (error) {
        history.notOk(op, "unknown", error);
        // Also when the producers are told to stop: what was begun is finished.
        await sleep(100);
      }
    }
  }

  const inbox = hf.inbox("storm");

  /** A parcel, put again until the answer is known. */
  async function post(): Promise<void> {
    const n = (last += 1);
    const key = `p${n}`;
    const bytes = Buffer.alloc(
      random.whole(1, random.chance(0.2) ? 600_000 : 20_000),
      hash("sha512", Buffer.from(key)),
    );
    const asked: Asked = { n, key, sha256: hash("sha256", bytes) };
    do {
      const op = history.asked("put", [asked]);
      try {
        const { id, created } = await inbox.put(bytes, { name: key, key });
        return history.ok(op, { ids: [id], created: [created] });
      } catch (error) {
        history.notOk(op, "unknown", error);
        await sleep(random.whole(10, 100));
      }
    } while (!isOver);
  }

  const receiving = new AbortController();
  async function receive(): Promise<void> {
    while (!receiving.signal.aborted) {
      try {
        for await (const arrival of inbox.poll({ every: "500ms", hold: "5s", signal: receiving.signal })) {
          const content = await arrival.open();
          history.arrived(arrival.parcel.key!, hash("sha256", await content.bytes()));
        }
      } catch {
        // It is left in the inbox, and comes again.
        await sleep(50);
      }
    }
  }

  async function produce(index: number): Promise<void> {
    // However short the storm is, it has some of each.
    if (index === 0) await doomed();
    if (index === 0) await coalesced();
    if (index === 0) await post();
    if (index === 0 && input.batches) await makeBatch();
    while (!isOver) {
      if (isFull) {
        await sleep(50);
        continue;
      }
      const lot = random();
      if (lot < 0.55) await Promise.all(Array.from({ length: random.whole(1, 8) }, () => one()));
      else if (lot < 0.75) await many();
      else if (lot < 0.83) await inTransaction();
      else if (lot < 0.86) await coalesced();
      else if (lot < 0.91) await again();
      else if (lot < 0.93) await refused();
      else if (lot < 0.97) await cancel();
      else if (lot < 0.98) await post();
      else if (input.batches && index === 0 && lot > 0.99) await makeBatch();
      await sleep(random.whole(0, 12));
    }
  }

  let recipient: Promise<void> | undefined;
  async function watch(): Promise<void> {
    while (!isOver) {
      isFull = (await input.waiting().catch(() => Infinity)) > input.backlog;
      await sleep(300);
    }
  }

  return {
    get asked() {
      return last;
    },
    start() {
      recipient ??= receive();
      loops = [watch(), ...Array.from({ length: input.loops }, (_, index) => produce(index))];
    },
    add: (asked, payload = {}) => {
      const n = (last += 1);
      const kind = "die" in payload && payload.die === "loop" ? loop : work;
      const options = asked.onDead ? { onDead: { kind: AFTER_DEATH } } : {};
      return one({ asked: { n, ...asked }, kind, payload: { n, ...asked, ...payload }, options });
    },
    async tail(count) {
      for (let done = 0; done < count; done += 1) await one(want({}, {}));
      await coalesced();
      await post();
      if (input.batches) await makeBatch();
    },
    async stop() {
      isOver = true;
      await Promise.all(loops);
      loops = [];
    },
    async close() {
      receiving.abort();
      await recipient;
    },
  };
}

const hash = (algorithm: string, bytes: Uint8Array): string => createHash(algorithm).update(bytes).digest("hex");

class NotCommitted extends Error {}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;
const isUnavailable = (error: unknown): boolean => codeOf(error) === "HOLDFAST_DATABASE_UNAVAILABLE";
const isOptionInvalid = (error: unknown): boolean =>
  ["HOLDFAST_OPTION_INVALID", "HOLDFAST_PAYLOAD_INVALID"].includes(String(codeOf(error)));
