// What a sender reads about a file, at every point of its way: from what is known to the words on the page.
import { describe, expect, test } from "vitest";
import type { Job, Parcel } from "holdfast";
import { fileStatus } from "../src/file-status.ts";
import { bytes, moment, words } from "../page/words.js";

const at = (day: number, hour: number, minute: number): Date => new Date(2026, 0, day, hour, minute);
const created = at(14, 12, 3);
const expires = at(15, 12, 3);
const minutes = (count: number): number => count * 60_000;

function parcel(more: Partial<Parcel> = {}): Parcel {
  return { state: "waiting", reason: null, createdAt: created, expiresAt: expires, ...more } as Parcel;
}

function read(more: Parameters<typeof fileStatus>[0] extends infer T ? Partial<T> : never): string {
  const now = more.now ?? at(14, 12, 4);
  const known = { parcel: parcel(), job: undefined, polledAt: null, now, offlineAfterMs: minutes(5), ...more };
  const status = JSON.parse(JSON.stringify(fileStatus(known))) as unknown;
  return (words as (status: unknown, now: Date) => string)(status, now);
}

describe("a workspace that polls", () => {
  test("on the way, received, expired", () => {
    expect(read({ polledAt: at(14, 12, 4) })).toBe("waiting for workspace");
    expect(read({})).toBe("waiting for workspace");
    expect(read({ parcel: parcel({ state: "fetched" }), now: at(14, 13, 0) })).toBe("fetched, not confirmed yet");
    const acked = parcel({ state: "acked", ackedAt: at(14, 12, 3) });
    expect(read({ parcel: acked })).toMatch(/^received \D*12:03/);
    expect(read({ parcel: acked, now: at(15, 9, 0) })).toMatch(/^received yesterday \D*12:03/);
    expect(read({ parcel: parcel({ state: "expired", reason: "never fetched" }) })).toBe("expired, never fetched");
    const unconfirmed = parcel({ state: "expired", reason: "fetched, never acked" });
    expect(read({ parcel: unconfirmed })).toBe("expired, fetched but never confirmed");
    expect(read({ parcel: undefined })).toBe("too long ago to know");
  });

  test("offline and stuck, just before and just after", () => {
    const offline = /^workspace offline, kept until tomorrow \D*12:03/;
    expect(read({ now: new Date(created.getTime() + minutes(5) - 1) })).toBe("waiting for workspace");
    expect(read({ now: new Date(created.getTime() + minutes(5)) })).toMatch(offline);
    expect(read({ polledAt: at(14, 11, 0) })).toMatch(offline);
    expect(read({ polledAt: at(14, 12, 7), now: at(14, 12, 7) })).toBe("waiting for workspace");
    expect(read({ polledAt: at(14, 12, 8), now: at(14, 12, 8) })).toMatch(
      /^workspace polls but does not fetch it, kept/,
    );
    expect(read({ polledAt: at(14, 12, 8), now: at(14, 12, 13) })).toMatch(offline);
    expect(read({ now: at(15, 9, 0) })).toMatch(/^workspace offline, kept until \D*12:03/);
  });
});

test("a workspace with a callback: waiting, retrying, given up, received", () => {
  const job = (more: Partial<Job>): Job =>
    ({ state: "pending", status: "ready", attempt: 0, lastError: null, ...more }) as Job;
  expect(read({ job: job({}), now: at(14, 20, 0) })).toBe("waiting for workspace");
  const runAt = new Date(at(14, 12, 4).getTime() + 30_000);
  expect(read({ job: job({ status: "retrying", attempt: 2, runAt }) })).toBe("retrying (2 tries) in 30 s");
  expect(read({ job: job({ status: "retrying", attempt: 1, runAt: at(14, 16, 0) }) })).toMatch(
    /^retrying \(1 try\) at /,
  );
  const dead = job({ state: "dead", status: "dead", attempt: 9, lastError: { message: "410" } as Job["lastError"] });
  expect(read({ job: dead })).toBe("could not be delivered (9 tries)");
  expect(read({ job: dead, parcel: parcel({ state: "acked", ackedAt: created }) })).toMatch(/^received/);
});

test("sizes and dates", () => {
  expect([1, 999, 1_000, 12_345, 1_500_000, 104_857_600].map(bytes as (count: number) => string)).toEqual([
    "1 byte",
    "999 bytes",
    "1.0 kB",
    "12 kB",
    "1.5 MB",
    "105 MB",
  ]);
  expect((moment as (at: Date, now: Date) => string)(at(20, 8, 0), at(14, 0, 0))).toMatch(/20.*8:00/);
});
