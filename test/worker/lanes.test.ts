// Where a lane's watermark is after a claim.
import { expect, test } from "vitest";
import type { ClaimedJob } from "#src/store/jobs/claim.js";
import { makeLanes } from "#src/worker/lanes.js";

const KIND = "lanes";
const inMicros = (date: string): string => String(BigInt(Date.parse(date)) * 1_000n);

function claimed(dates: readonly string[], limit: number): string {
  const lanes = makeLanes([KIND]);
  lanes.wake(KIND, 0);
  const jobs = dates.map((date, index) => ({
    id: `00000000-0000-7000-8000-00000000000${index}`,
    kind: KIND,
    rank: 0,
    run_us: inMicros(date),
    lag_ms: 1e9,
  }));
  lanes.claimed(lanes.all(), [0], jobs as unknown as ClaimedJob[], limit);
  const [lane] = lanes.all();
  return new Date(Number(lane!.fromUs) / 1_000).toISOString().slice(0, 10);
}

test.each([
  ["around the day of 2001 when the microseconds got another digit", "2001-09-08", "2001-09-10"],
  ["around 1970", "1969-12-31", "1970-01-02"],
  ["both before 1970", "1950-01-01", "1960-01-01"],
  ["far apart", "1800-01-01", "2200-01-01"],
  ["now", "2026-01-01", "2026-01-02"],
])("jobs due %s: the watermark is at the first of them, or at the last if there may be more", (_, first, last) => {
  for (const dates of [
    [first, last],
    [last, first],
  ]) {
    expect(claimed(dates, 10)).toBe(first);
    expect(claimed(dates, 2)).toBe(last);
  }
});

test("a lane that gave as many as it could stays hot, those that gave fewer do not", () => {
  const lanes = makeLanes(["full", "few", "none"]);
  for (const kind of ["full", "few", "none"]) lanes.wake(kind, 0);
  const job = (kind: string, index: number) => ({
    id: `00000000-0000-7000-8000-${kind.padEnd(11, "0").slice(0, 11)}${index}`,
    kind,
    rank: 0,
    run_us: inMicros("2026-01-01"),
    lag_ms: 1e9,
  });
  const jobs = [job("full", 0), job("full", 1), job("few", 0)] as unknown as ClaimedJob[];
  const hot = lanes.best();
  lanes.claimed(
    hot,
    hot.map(({ wakes }) => wakes),
    jobs,
    10,
    2,
  );
  expect(lanes.best().map(({ kind }) => kind)).toEqual(["full"]);
});

test("a watermark is set back, and never forward", () => {
  const lanes = makeLanes([KIND]);
  const place = (): [string, boolean] => [lanes.all()[0]!.fromUs, lanes.all()[0]!.hot];
  lanes.see([{ what: "lane", kind: KIND, rank: 0, id: null, run_us: "500", due_ms: 1 }], 0);
  expect(place()).toEqual(["500", false]);
  lanes.setBack(KIND, 0, "900");
  expect(place()).toEqual(["500", true]);
  lanes.setBack(KIND, 0, "90");
  expect(place()).toEqual(["90", true]);
  lanes.setBack(KIND, 7, "1");
  expect(lanes.all()).toHaveLength(1);
});
