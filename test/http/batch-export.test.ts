// Exports: every item once, in order, as lines and as CSV that no spreadsheet runs.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { csvLine } from "#src/http/csv.js";
import { TIERS, useHoldfast } from "../support/open-test.ts";
import { type Api, authorization, serveApi } from "./api.ts";
import { BATCH_KINDS, idle, importer } from "./batch-kinds.ts";

describe.each(TIERS)("%s", (tier) => {
  const bench = useHoldfast(tier);
  let api: Api;
  beforeAll(async () => {
    api = await serveApi(bench.hf, { kinds: BATCH_KINDS });
    await bench.hf.work([importer]);
  });
  afterAll(() => api.close());
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`${api.server.url}/api/v1/batches/${path}`, { ...init, headers: tier === "server" ? authorization : {} });

  test("lines: every item, also across pages, and only those in a state if asked", async () => {
    const { id } = await bench.hf.batches.create(
      idle,
      Array.from({ length: 2_345 }, (_, n) => ({ n, text: `ä\n${n}` })),
    );
    const response = await get(`${id}/export.ndjson`);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="batch-${id}.ndjson"`);
    const text = await response.text();
    const items = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { seq: number; payload: { n: number } });
    expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: 2_345 }, (_, n) => n + 1));
    expect(items.every(({ seq, payload }) => payload.n === seq - 1)).toBe(true);
    expect(await (await get(`${id}/export.ndjson?state=error`)).text()).toBe("");
    expect((await get(`${id}/export.ndjson?state=lost`)).status).toBe(400);
    const head = await get(`${id}/export.csv`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type"), await head.text()]).toEqual([
      200,
      "text/csv; charset=utf-8",
      "",
    ]);
    expect((await get("01a1e299-0e62-7000-b7d8-b9cc8b876cb7/export.csv")).status).toBe(404);
  });

  test("items of megabytes: a page has as many as fit, and goes on; an export has all of them", async () => {
    const text = "x".repeat(1_500_000);
    const { id } = await bench.hf.batches.create(
      idle,
      Array.from({ length: 20 }, (_, n) => ({ n, text })),
    );
    const seqs: number[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages += 1) {
      const page: { items: { seq: number }[]; next: string | null } = (
        await api.get(`/api/v1/batches/${id}/items?limit=500&cursor=${cursor}`)
      ).body;
      expect(page.items.length).toBeLessThan(10);
      seqs.push(...page.items.map(({ seq }) => seq));
      cursor = page.next;
    }
    expect(pages).toBeGreaterThan(2);
    expect(seqs).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
    const exported = await (await get(`${id}/export.ndjson`)).text();
    expect(exported.trimEnd().split("\n")).toHaveLength(20);
    await bench.hf.batches.cancel(id);
  });

  test("CSV: a header, one row for each item, errors that are no formulas", async () => {
    const { id } = await bench.hf.batches.create(importer, [{ url: 'bad "=1+1", x' }, { url: "fine" }]);
    await bench.hf.batches.wait(id, { timeout: "20s" });
    const rows = (await (await get(`${id}/export.csv`)).text()).split("\r\n");
    expect(rows[0]).toBe("seq,state,attempt,startedAt,endedAt,error,jobId,payload,result");
    expect(rows[1]).toMatch(/^1,error,1,/);
    expect(rows[1]).toContain('"Fatal: cannot read bad ""=1+1"", x"');
    expect(rows[2]).toMatch(/^2,saved,1,.*"\{""url"":""fine""\}","\{""title"":""About fine""\}"$/);
    expect(rows.slice(3)).toEqual([""]);
  });
});

test.each([
  ["=1+1", '"\'=1+1"'],
  ["+1", '"\'+1"'],
  ["-1+1", '"\'-1+1"'],
  ["@sum(a)", '"\'@sum(a)"'],
  ["\t=1", '"\'\t=1"'],
  ["\r=1", '"\'\r=1"'],
  ["  =1", '"\'  =1"'],
  ["＝1", '"\'＝1"'],
  ["|calc", '"\'|calc"'],
  ['=cmd|"/c calc"!A0', '"\'=cmd|""/c calc""!A0"'],
  ["a=1", "a=1"],
  ['say "a"', '"say ""a"""'],
  ["a,b", '"a,b"'],
  ["two\nlines", '"two\nlines"'],
  ["", ""],
])("a cell %j", (text, written) => {
  expect(csvLine([text])).toBe(`${written}\r\n`);
});

test("numbers stay numbers", () => {
  expect(csvLine([-1, 0, null])).toBe("-1,0,\r\n");
});
