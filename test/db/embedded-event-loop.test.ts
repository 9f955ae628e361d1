// The embedded database does not block whoever uses it: its synchronous calls happen in a thread.
import { expect, test } from "vitest";
import { openEmbedded } from "#src/db/embedded.js";
import { testSeed } from "./children/seed.mjs";

test("timers go on while a statement runs for seconds", async () => {
  const db = await openEmbedded({ memory: true }, { seed: await testSeed() });
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 10);
  const startedAt = performance.now();
  await db.query(
    `select count(*) from generate_series(1, 100000000) n
      where n % 1000 = 0 and clock_timestamp() < now() + interval '2 s' limit 1`,
  );
  const ms = performance.now() - startedAt;
  clearInterval(timer);
  await db.close();
  // A quarter of what an idle machine gives; a blocked event loop gives one or none.
  expect(ticks, `in ${ms} ms`).toBeGreaterThan(ms / 40);
});
