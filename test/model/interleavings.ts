// Every order in which the steps of several actors can happen: each claims the one job there is, each lets the janitor
// expire what is overdue, each settles what it claimed. As a tree: every step runs in a savepoint, so that what the orders
// have in common is run once, and every answer is compared with the model's.
import { expect } from "vitest";
import { claimLane, claimSuspect } from "#src/store/jobs/claim.js";
import { insertJobs, insertTaken } from "#src/store/jobs/insert.js";
import { markTokens } from "#src/store/jobs/mark.js";
import { settleDone, settleRuns } from "#src/store/jobs/settle.js";
import { endSetApart, expireIfOverdue } from "#src/store/janitor/expire-leases.js";
import { cancelIfOpen } from "#src/store/jobs/cancel.js";
import { uuidv7 } from "#src/shared/uuid.js";
import { makeStore, type Store } from "#src/store/sql.js";
import { Model } from "./model.ts";
import { asDb, SCHEMA, type SimDatabase } from "./simulation/database.ts";

/** What is different about the one job, or about what the actors do with it. */
export const VARIANTS = ["plain", "handed over", "fails", "cancelled"] as const;
export type Variant = (typeof VARIANTS)[number];

const KIND = "model.work";
const LEASE_MS = 1_000;
const STEPS = ["claim", "expire", "settle"] as const;
const DAY_MS = 86_400_000;
const holderOf = (token: string) => ({
  token,
  workerId: uuidv7(),
  leases: JSON.stringify([{ kind: KIND, lease_ms: LEASE_MS }]),
});

/** What this actor does that not every other one does: those that do the same are each other's mirror images. */
function roleOf(actor: number, variant: Variant): string {
  if (variant === "cancelled" && actor === 0) return "late, and cancels";
  return actor % 2 === 0 ? "late" : "early";
}

/** The same for two orders that differ in nothing but which of two alike actors is which. */
function courseOf(order: readonly number[], variant: Variant): string {
  const seen: number[] = [];
  return order
    .map((actor) => {
      if (!seen.includes(actor)) seen.push(actor);
      const role = roleOf(actor, variant);
      return `${role} ${seen.filter((each) => roleOf(each, variant) === role).indexOf(actor)}`;
    })
    .join(", ");
}

/** How many complete orders there were, and how many of them are no mirror image of another one. */
export async function tryAllOrders(
  database: SimDatabase,
  startMs: number,
  variant: Variant,
  actors: number,
): Promise<{ orders: number; distinct: number }> {
  await database.empty();
  await database.setClock(startMs);
  const { query } = database;
  // All of it is inside one transaction: what a verb does in one of its own is part of that.
  const store = makeStore(asDb({ query, transaction: (work) => work({ query }) }), SCHEMA);
  const model = new Model(startMs);
  const id = uuidv7();
  const job = { id, kind: KIND, queue: "default", rank: 0, attempts: 3, payload: "0" };
  model.enqueue({ id, rank: 0, payload: 0, key: null, coalesce: null, group: null, delay: 0, keepKeyMs: 0 });
  let orders = 0;
  const courses = new Set<string>();
  await query("begin");
  if (variant === "handed over") {
    // Somebody else had it from the start, and never spoke again.
    model.take([id], "999", LEASE_MS, { light: true });
    await insertTaken(store, [job], { token: "999", workerId: uuidv7(), leaseMs: LEASE_MS });
  } else await insertJobs(store, [job], null);

  const walk = async (at: Model, done: readonly number[], order: readonly number[]): Promise<void> => {
    const depth = order.length;
    if (done.every((steps) => steps === STEPS.length)) {
      orders += 1;
      courses.add(courseOf(order, variant));
      return;
    }
    for (let actor = 0; actor < actors; actor += 1) {
      const step = STEPS[done[actor]!];
      if (!step) continue;
      await query(`savepoint s${depth}`);
      const here = structuredCopy(at);
      await takeStep(here, store, database, actor, step, variant);
      await walk(here, done.with(actor, done[actor]! + 1), [...order, actor]);
      await query(`rollback to savepoint s${depth}`);
    }
  };
  await walk(
    model,
    Array.from({ length: actors }, () => 0),
    [],
  );
  await query("rollback");
  return { orders, distinct: courses.size };
}

async function takeStep(
  model: Model,
  store: Store,
  database: SimDatabase,
  actor: number,
  step: (typeof STEPS)[number],
  variant: Variant,
): Promise<void> {
  const token = String(100 + actor);
  const id = [...model.jobs.keys()][0]!;
  if (step === "claim") {
    const wanted = model.claimable(0, 1);
    const suspects = model.suspects(true);
    const lane = { kind: KIND, rank: 0, fromUs: "0", fromId: "00000000-0000-0000-0000-000000000000" };
    const plain = await claimLane(store, holderOf(token), lane, 1);
    expect(plain.map((each) => each.id)).toEqual(wanted);
    if (wanted.length > 0) return model.take(wanted, token, LEASE_MS);
    const alone = await claimSuspect(store, holderOf(token), [KIND], true);
    expect(alone.map((each) => each.id)).toEqual(suspects);
    return model.take(suspects, token, LEASE_MS, { alone: true });
  }
  if (step === "expire") {
    // Half of the janitors look before anything is overdue.
    model.now += actor % 2 === 0 ? LEASE_MS + 1 : 400;
    await database.setClock(model.now);
    const wanted = model.expire();
    const expired = await expireIfOverdue(store, { limit: 100, seenForMs: Infinity, atOnce: true });
    expect(expired.map((each) => each.id)).toEqual(wanted);
    const ended = model.endSetApart();
    expect((await endSetApart(store, 100, DAY_MS)).map((each) => each.id)).toEqual(ended);
    if (variant === "cancelled" && actor === 0) {
      const how = model.cancel(id);
      expect((await cancelIfOpen(store, [id], DAY_MS))[0]?.how).toBe(how);
    }
  } else {
    // The old run, the new one, or somebody who never had it: all of them speak.
    const run = { id, token, leaseMs: LEASE_MS };
    model.mark(token);
    await markTokens(store, [token]);
    if (variant !== "fails" && model.jobs.get(id)?.cancelAsked !== true) {
      const wanted = model.settle(run, "done", 0);
      // Its lease has nothing else to be there for.
      const settled = await settleDone(store, [{ id, token, keepMs: DAY_MS }], [run]);
      expect([...settled]).toEqual(wanted === undefined ? [] : [id]);
      if (wanted !== undefined) model.leases.delete(token);
    } else {
      const wanted = model.settle(run, "retry", 0);
      const error = { name: "Error", message: "as the order wants it" };
      const ended = {
        id,
        token,
        keepMs: DAY_MS,
        keepEndedMs: DAY_MS,
        outcome: "retry" as const,
        delayMs: 0,
        group: null,
        error,
      };
      const settled = await settleRuns(store, [ended]);
      expect(settled.map((each) => each.verdict)).toEqual(wanted === undefined ? [] : [wanted]);
    }
  }
  await compareRow(model, database, id);
}

async function compareRow(model: Model, { query }: SimDatabase, id: string): Promise<void> {
  const { rows } = await query<{
    state: string;
    claims: number;
    attempt: number;
    crashes: number | null;
    hold: number | null;
  }>(
    `select state::text, claim_count as claims, attempt, crash_count::integer as crashes, hold::integer from ${SCHEMA}.jobs where id = $1
     union all select state::text, claim_count, attempt, null, null from ${SCHEMA}.job_history where id = $1`,
    [id],
  );
  const { state, claims, attempt, crashes, hold } = model.jobs.get(id)!;
  const isLive = state === "pending" || state === "running" || state === "dead";
  expect(rows).toEqual([{ state, claims, attempt, crashes: isLive ? crashes : null, hold: isLive ? hold : null }]);
}

function structuredCopy(model: Model): Model {
  const copy = new Model(model.now);
  for (const [id, job] of model.jobs) copy.jobs.set(id, { ...job });
  for (const [token, lease] of model.leases) copy.leases.set(token, { ...lease, jobs: [...lease.jobs] });
  for (const [key, entry] of model.keys) copy.keys.set(key, { ...entry });
  for (const [group, members] of model.groups) copy.groups.set(group, [...members]);
  for (const [id, count] of model.charged) copy.charged.set(id, count);
  copy.runs.push(...model.runs);
  return copy;
}
