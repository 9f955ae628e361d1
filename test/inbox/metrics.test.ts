// What /metrics says about the inboxes.
import { expect, test } from "vitest";
import { useHoldfast } from "../support/open-test.ts";
import { someone } from "./scene.ts";

const bench = useHoldfast("embedded");

test("parcels are counted by what happens to them, and what is open is shown", async () => {
  const inbox = bench.hf.inbox(someone());
  // Counting begins with the first look.
  await bench.hf.metrics.text();
  const { id } = await inbox.put("12345", { key: "k" });
  await inbox.put("12345", { key: "k" });
  await inbox.put("123");
  await (await inbox.open(id)).text();
  await inbox.ack(id);
  const text = async (): Promise<string> => await bench.hf.metrics.text();
  expect(await text()).toContain('holdfast_inbox_parcels_total{event="put"} 2');
  expect(await text()).toContain('holdfast_inbox_parcels_total{event="fetched"} 1');
  expect(await text()).toContain('holdfast_inbox_parcels_total{event="acked"} 1');
  expect(await text()).toMatch(/holdfast_inbox_parcels\{state="waiting"\} \d/);
  expect(await text()).toMatch(/holdfast_inbox_oldest_waiting_age_seconds \d/);
});
