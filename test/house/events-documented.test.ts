// docs/events.md and src/metrics/events.ts list the same events.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { EVENT_NAMES } from "#src/metrics/events.js";

test("every event is documented, and every documented event exists", () => {
  const page = readFileSync("docs/events.md", "utf8");
  const documented = [...page.matchAll(/^\| `([a-z.]+)` \|/gm)].map((match) => match[1]);
  expect(new Set(documented)).toEqual(new Set(EVENT_NAMES));
});
