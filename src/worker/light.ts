// When jobs are claimed lightly (store/jobs/mark.ts), and when such a claim is marked after all.
//
// Light claims are for kinds whose jobs end within a moment. A claim that lives longer is marked, and its kind is claimed
// the ordinary way for a while. Before anything but plain success is written about a run, its claim is marked.
import { performance } from "node:perf_hooks";
import { isLockTimeout } from "../db/retryable.ts";
import type { AnyJobKind } from "../job/define-job.ts";
import { sleep } from "../shared/sleep.ts";
import type { Store } from "../store/sql.ts";
import { markTokens } from "../store/jobs/mark.ts";
import type { HeldLease, Run } from "./run.ts";

/** A light claim that is older than this is marked: people look at what runs for longer than a moment. */
const LIGHT_MS = 500;
const HEAVY_MS = 10_000;
const MARK_TRIES = 30;
const MARK_PAUSE_MS = 20;
/** Below this many, an ordinary claim costs about the same. */
export const MANY = 50;

/** Until when a kind is claimed the ordinary way, because light claims of it had to be marked. */
const heavyUntil = new WeakMap<AnyJobKind, number>();

export function suitsLight(kind: AnyJobKind): boolean {
  return (heavyUntil.get(kind) ?? 0) < performance.now();
}

/** Marks what has been light for too long. */
export async function markOld(store: Store, leases: Iterable<HeldLease>): Promise<void> {
  const old: Run[] = [];
  for (const { isLight, runs } of leases) {
    if (!isLight || performance.now() - runs[0]!.startedAt < LIGHT_MS) continue;
    // What only waits to be settled is over in a moment.
    const long = runs.find((run) => run.lease && !run.outcome);
    if (long) old.push(long);
  }
  await markRuns(store, old);
}

/** The claims of these runs are marked in the database when this resolves. */
export async function markRuns(store: Store, runs: readonly Run[]): Promise<void> {
  const leases = new Set<HeldLease>();
  for (const { lease, kind } of runs) {
    if (!lease?.isLight) continue;
    leases.add(lease);
    heavyUntil.set(kind, performance.now() + HEAVY_MS);
  }
  if (leases.size === 0) return;
  const fresh = [...leases].filter((lease) => !lease.marking);
  if (fresh.length > 0) {
    // The runs of one claim often ask at the same moment: one statement is for all of them.
    const marking = mark(store, fresh);
    for (const lease of fresh) lease.marking = marking;
  }
  await Promise.all([...leases].map((lease) => lease.marking ?? Promise.resolve()));
}

async function mark(store: Store, leases: readonly HeldLease[]): Promise<void> {
  const tokens = leases.map((lease) => lease.token);
  try {
    await patiently(() => markTokens(store, tokens));
    for (const lease of leases) lease.isLight = false;
  } finally {
    for (const lease of leases) lease.marking = undefined;
  }
}

/** Somebody else is at the lease's row for a moment: no reason for a handler to fail. */
async function patiently(work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isLockTimeout(error) || tries >= MARK_TRIES) throw error;
      await sleep(MARK_PAUSE_MS);
    }
  }
}

/** The same inside a transaction, which may still be rolled back. */
export async function markInside(store: Store, run: Run): Promise<void> {
  if (run.lease?.isLight) await markTokens(store, [run.token]);
}
