// What people do on the screens, in a real Chromium against a real server: the outage that is found in two clicks and
// redriven in three, filters, selections, queues, batches, the janitor, the form, the palette, signing in.
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assertAccessible, launch, openPage, type Scene, settled, startScene } from "./scene.ts";

let scene: Scene;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  [scene, browser] = await Promise.all([startScene(), launch()]);
  ({ page } = await openPage(browser, "desktop", "light"));
});
afterAll(async () => {
  await browser.close();
  await scene.stop();
});

const api = async <T>(path: string): Promise<T> => (await (await fetch(`${scene.url}/api/v1/${path}`)).json()) as T;
const open = async (path: string): Promise<void> => {
  await page.goto(`${scene.url}/#/${path}`);
  await settled(page);
};
const sees = (text: RegExp) => expect.poll(() => page.locator("main").textContent(), { timeout: 8_000 }).toMatch(text);

describe("during an outage", () => {
  test("a stranger finds the cause of a dead job in two clicks, and redrives the group in three", async () => {
    await open("");
    // One: what the verdict names. Two: the group.
    await page.getByRole("link", { name: /jobs in queue payments died in the last hour/ }).click();
    await page.getByRole("link", { name: /Gateway did not answer/ }).click();
    await sees(/caused by Error\s*ECONNREFUSED.*connect ECONNREFUSED 10\.0\.3\.17:8443/);

    scene.child.kill("SIGUSR2");
    await open("");
    await page.getByRole("link", { name: /jobs in queue payments died in the last hour/ }).click();
    await page.getByRole("button", { name: /^Redrive payments\.charge/ }).click();
    await page.getByRole("button", { name: "Redrive 12" }).click();
    await expect
      .poll(async () => (await api<{ count: number }>("jobs/count?status=dead&kind=payments.charge")).count, {
        timeout: 15_000,
      })
      .toBe(0);
    await open("actions");
    await sees(/retry .*payments\.charge/);
  });
});

test("the badge says its words, and what is behind them on focus, until Escape", async () => {
  await open("jobs?q=status:retrying");
  const badge = page.getByRole("button", { name: "retrying (1 try)" }).first();
  await badge.focus();
  const bubble = page.getByRole("tooltip").first();
  await expect.poll(() => bubble.isVisible()).toBe(true);
  expect(await bubble.textContent()).toMatch(/TypeError: Cannot read properties.*Attempt 1 of 5\..*Next try in \d+m/);
  await page.keyboard.press("Escape");
  await expect.poll(() => bubble.isVisible()).toBe(false);
  await open("jobs");
  // However long the tests before this one took: minutes, on a busy machine.
  for (const words of [
    /^scheduled in \d+[ms]$/,
    /^ready (\d+m )?\d+[ms]$/,
    /^running (\d+m )?\d+[ms] · 81 %$/,
    /^done after 3 tries$/,
    /^paused$/,
    /^cancelled$/,
    /^dead after 1 try$/,
  ]) {
    await expect
      .poll(async () => (await page.locator(".badge").allTextContents()).some((text) => words.test(text)), {
        message: String(words),
      })
      .toBe(true);
  }
});

test("what is behind a badge opens under the pointer and stays there; on a phone it opens on a tap", async () => {
  await open("jobs?q=status:retrying");
  const badge = page.getByRole("button", { name: "retrying (1 try)" }).first();
  const bubble = page.locator(`[id="${await badge.getAttribute("aria-describedby")}"]`);
  expect(await bubble.isVisible()).toBe(false);
  await badge.hover();
  await expect.poll(() => bubble.isVisible()).toBe(true);
  await bubble.hover();
  await page.waitForTimeout(400);
  expect(await bubble.isVisible()).toBe(true);
  await page.locator("h1").hover();
  await expect.poll(() => bubble.isVisible()).toBe(false);

  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true });
  const phone = await context.newPage();
  await phone.goto(`${scene.url}/#/jobs?q=status:retrying`);
  await settled(phone);
  await phone.getByRole("button", { name: "retrying (1 try)" }).first().tap();
  const tapped = phone.locator(".bubble-open");
  await expect.poll(() => tapped.isVisible()).toBe(true);
  expect(await tapped.textContent()).toMatch(/TypeError: .*Attempt 1 of 5\..*Next try in/);
  const { x, width } = (await tapped.boundingBox())!;
  expect(x).toBeGreaterThanOrEqual(0);
  expect(x + width).toBeLessThanOrEqual(320);
  await context.close();
});

test("the filter stands in the address, suggests, and goes back and forth", async () => {
  await open("jobs");
  await page.keyboard.press("/");
  await page.keyboard.type("kind:ser");
  await page.keyboard.press("Enter");
  await sees(/No job fits/);
  await page.getByLabel("Filter jobs").fill("ki");
  await page.getByRole("option", { name: "kind:" }).click();
  await page.getByRole("option", { name: "kind:search.index" }).click();
  expect(decodeURIComponent(page.url())).toContain("q=kind:search.index");
  await expect.poll(() => page.locator("main tbody tr").count()).toBe(2);
  await page.getByRole("button", { name: "dead", exact: true }).click();
  expect(decodeURIComponent(page.url()).replaceAll("+", " ")).toContain("status:dead kind:search.index");
  await page.getByLabel("Filter jobs").fill("colour:red");
  await page.keyboard.press("Enter");
  await sees(/colour: is not something to filter by/);
  await assertAccessible(page, "a wrong filter");
});

test("some are selected with the keyboard and cancelled in the background", async () => {
  await open("jobs?q=kind:video.encode");
  await expect.poll(() => page.locator("main tbody tr").count()).toBe(3);
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("X");
  await sees(/3 selected/);
  await page.getByRole("region", { name: "Selected jobs" }).getByRole("button", { name: "Cancel" }).click();
  await assertAccessible(page, "a question");
  await page.getByRole("button", { name: "Cancel them 3" }).click();
  await expect
    .poll(async () => (await api<{ count: number }>("jobs/count?status=cancelled&kind=video.encode")).count, {
      timeout: 15_000,
    })
    .toBe(3);
});

test("all that match are selected, beyond the page", async () => {
  await open("jobs?q=kind:mail.send");
  await page.getByLabel("Select all on this page").click();
  await page.getByRole("button", { name: /Select all \d+ matching/ }).click();
  await sees(/All 24\d matching selected/);
  await page
    .getByRole("button", { name: "Older" })
    .or(page.getByRole("link", { name: "Older" }))
    .click();
  await expect.poll(() => page.url()).toContain("before=");
});

test("one verb on all that match, beyond the page, is an action in the background, and in the audit log", async () => {
  for (let n = 0; n < 60; n += 1) {
    const body = JSON.stringify({ kind: "video.encode", payload: { video: n }, delay: "1h" });
    await fetch(`${scene.url}/api/v1/jobs`, { method: "POST", headers: { "content-type": "application/json" }, body });
  }
  await open("jobs?q=kind:video.encode status:scheduled");
  await expect.poll(() => page.locator("main tbody tr").count()).toBe(50);
  await page.getByLabel("Select all on this page").click();
  await page.getByRole("button", { name: "Select all 60 matching" }).click();
  await page.getByRole("region", { name: "Selected jobs" }).getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel them 60" }).click();
  const left = async () => (await api<{ count: number }>("jobs/count?status=scheduled&kind=video.encode")).count;
  await expect.poll(left, { timeout: 15_000 }).toBe(0);
  const { actions } = await api<{ actions: { id: string; done: number; askedBy: string }[] }>("actions");
  expect(actions[0]).toMatchObject({ verb: "cancel", done: 60, askedBy: "local" });
  const { entries } = await api<{ entries: object[] }>("audit");
  expect(entries).toContainEqual(
    expect.objectContaining({ action: "startAction", caller: "local", target: actions[0]!.id }),
  );
  await open("system");
  await page.getByRole("link", { name: actions[0]!.id }).click();
  await sees(/cancel status:scheduled kind:video\.encode.*60 of 60/);
});

test("one dead job is retried; one is discarded after a question", async () => {
  await open("jobs?q=status:dead kind:articles.import");
  await page.locator("main tbody a[data-row]").first().click();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await expect
    .poll(async () => (await api<{ count: number }>("jobs/count?status=dead&kind=articles.import")).count)
    .toBe(1);
  await open("jobs?q=status:dead kind:articles.import");
  await page.locator("main tbody a[data-row]").first().click();
  await page.getByRole("button", { name: "Retry now" }).click();
  await expect.poll(() => page.locator(".toasts").textContent()).toMatch(/runs again/);
});

test("a queue is paused and resumed", async () => {
  await open("queues");
  await page.getByRole("button", { name: "Pause mail" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume mail" }).click();
  await page.getByRole("button", { name: "Pause mail" }).waitFor();
});

test("a worker is drained, says so, and is let loose again", async () => {
  await open("workers");
  await page.getByRole("button", { name: "Drain web-1:4711" }).click();
  await sees(/draining, asked by local/);
  await assertAccessible(page, "a worker that drains");
  await page.getByRole("button", { name: "Resume web-1:4711" }).click();
  await page.getByRole("button", { name: "Drain web-1:4711" }).waitFor();
});

test("a running job is released after a question, on the workers' page and on its own; it runs again", async () => {
  const { jobs } = await api<{ jobs: { id: string; claimCount: number }[] }>("jobs?status=running&kind=reports.build");
  const { id } = jobs[0]!;
  const claims = async () => (await api<{ claimCount: number }>(`jobs/${id}`)).claimCount;
  const before = await claims();
  await open("workers");
  await sees(/of 30s left.*reports\.build/);
  await page.getByRole("button", { name: new RegExp(`Release .*${id.slice(0, 8)}….*${id.slice(-4)}`) }).click();
  await assertAccessible(page, "the question before a release");
  await page.getByRole("dialog").getByRole("button", { name: "Release" }).click();
  await expect.poll(() => page.locator(".toasts").textContent()).toMatch(/1 job released/);
  await expect.poll(claims).toBe(before + 1);
  await open(`jobs/${id}`);
  await page.getByRole("button", { name: "Release" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Keep as it is" }).click();
  await page.getByRole("button", { name: "Release" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Release" }).click();
  await expect.poll(claims).toBe(before + 2);
  // What was done before went on from where it was: nothing of it was lost.
  await sees(/collect/);
});

test("the states of a job, and the way that it took, drawn and in words", async () => {
  const first = async (query: string) => (await api<{ jobs: { id: string }[] }>(`jobs?${query}`)).jobs[0]!.id;
  await open(`jobs/${await first("kind=search.index&status=done")}`);
  await sees(/Enqueued, ran 3 times, tried again 2 times; now done\./);
  expect(await page.locator(".diagram-wide .node-now").textContent()).toMatch(/done/);
  expect(await page.locator(".diagram-wide .edge-on").count()).toBe(5);
  expect(await page.locator(".diagram-wide .node-dead.node-not").count()).toBe(1);
  await open(`jobs/${await first("status=cancelled&kind=mail.send")}`);
  await sees(/Enqueued, scheduled; now cancelled\./);
  expect(await page.locator(".diagram-wide .node-ready.node-not").count()).toBe(1);
  expect(await page.locator(".diagram-wide .node-running.node-not").count()).toBe(1);
});

test("a failed item of a batch is tried again alone", async () => {
  const { batches } = await api<{ batches: { id: string }[] }>("batches");
  await open(`batches/${batches[0]!.id}?state=error`);
  const button = page.getByRole("button", { name: /^Retry item 5$/ });
  await button.click();
  await expect.poll(() => page.locator(".toasts").textContent()).toMatch(/Item 5 will be tried again/);
});

test("a filter by something that is masked is refused in words", async () => {
  await open("jobs?q=kind:payments.charge payload.customer.email:ada");
  await sees(/payload\.customer\.email is masked in jobs of the kind payments\.charge/);
});

test("a filter is kept under a name, found again after a reload, and forgotten", async () => {
  await open("jobs?q=kind:search.index");
  await page.getByRole("button", { name: "Save this view" }).click();
  await page.getByLabel("Name of this view").fill("Search");
  await page.keyboard.press("Enter");
  await open("jobs");
  await page.reload();
  await settled(page);
  const views = page.getByRole("group", { name: "Saved views" });
  await views.getByRole("link", { name: "Search" }).click();
  expect(decodeURIComponent(page.url())).toContain("q=kind:search.index");
  await expect.poll(() => page.locator("main tbody tr").count()).toBe(2);
  expect(await views.getByRole("button", { name: "Save this view" }).count()).toBe(0);
  await assertAccessible(page, "saved views");
  await views.getByRole("button", { name: "Forget the view Search" }).click();
  expect(await views.getByRole("link").count()).toBe(0);
});

test("the header says which installation it is, on a phone too, and so does the title", async () => {
  const { page: phone } = await openPage(browser, "phone", "dark");
  await phone.goto(`${scene.url}/#/jobs`);
  await expect.poll(() => phone.locator(".top").getByText("staging").isVisible()).toBe(true);
  await expect.poll(() => phone.title()).toBe("Jobs · Holdfast staging");
  await phone.close();
});

test("what its kind redacts is not on the page of a job", async () => {
  const { jobs } = await api<{ jobs: { id: string }[] }>("jobs?kind=payments.charge&limit=1");
  await open(`jobs/${jobs[0]!.id}`);
  await sees(/customer/);
  const shown = await page.locator("main").textContent();
  expect(shown).toContain("***");
  expect(shown).not.toContain("ada.lovelace@example.com");
  // What only looks like a secret is covered, for whoever looks over a shoulder.
  expect(shown).not.toContain("tok_live_9f");
  await page.getByRole("button", { name: "show apiToken" }).click();
  await sees(/apiToken: "tok_live_9f"/);

  // A copy of such a job would carry the mask.
  await page.getByRole("link", { name: "Duplicate" }).click();
  await sees(/Masked here: customer\.email\. Write what belongs there/);
  expect(JSON.parse(await page.getByLabel("JSON").inputValue())).toMatchObject({ customer: { email: "***" } });
});

test("a number that JavaScript would round is shown with every digit, and is not rounded on its way back", async () => {
  const { jobs } = await api<{ jobs: { id: string }[] }>("jobs?kind=reports.build&limit=1");
  await open(`jobs/${jobs[0]!.id}`);
  await sees(/account: 9007199254740993/);
  await page.getByRole("link", { name: "Duplicate" }).click();
  await expect.poll(() => page.getByLabel("JSON").inputValue()).toContain('"account": 9007199254740993');
  await page.getByRole("button", { name: "Enqueue" }).click();
  await sees(/9007199254740993, which JavaScript cannot keep exactly/);
  expect((await api<{ jobs: object[] }>("jobs?kind=reports.build")).jobs).toHaveLength(1);
});

test("an item's job leads to its batch, whose items are saved as files", async () => {
  const { jobs } = await api<{ jobs: { id: string }[] }>("jobs?status=running&kind=catalog.import");
  await open(`jobs/${jobs[0]!.id}`);
  await page.getByRole("link", { name: /^batch / }).click();
  await sees(/Product \d+ has no name/);
  const { batches } = await api<{ batches: { id: string }[] }>("batches");
  const save = async (name: RegExp) => {
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    return { name: saved.suggestedFilename(), text: await readFile(await saved.path(), "utf8") };
  };
  const csv = await save(/^CSV of all items/);
  expect(csv.name).toBe(`batch-${batches[0]!.id}.csv`);
  expect(csv.text.trim().split(/\r?\n/)).toHaveLength(61);
  await page.getByRole("button", { name: /^duplicate \d/ }).click();
  const lines = (await save(/^JSON of items that are duplicate/)).text.trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { state: string }).state)).toEqual(lines.map(() => "duplicate"));
});

test("a batch is paused, resumed, retried and cancelled", async () => {
  await open("batches");
  await page.getByRole("link", { name: "catalog.import" }).click();
  await page.getByRole("progressbar").first().waitFor();
  expect(await page.getByRole("progressbar").first().getAttribute("aria-valuetext")).toMatch(
    /^\d+ of 60, \d+ errors?$/,
  );
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Retry failed" }).click();
  await expect.poll(() => page.locator(".toasts").textContent()).toMatch(/will be tried again/);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("button", { name: "Cancel the batch" }).click();
  await sees(/cancelled/);
});

test("a chore tells what it would do, and does it", async () => {
  await open("janitor");
  await page.getByRole("button", { name: "Preview remove-dead-workers" }).click();
  await sees(/remove-dead-workers would take/);
  await page.getByRole("button", { name: "Run measure-queues" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run" }).click();
  await expect.poll(() => page.locator(".toasts").textContent()).toMatch(/measure-queues: nothing in/);
});

test("the form is made from the schema; the same key is told; a wrong payload is refused with its field", async () => {
  await open("enqueue?kind=mail.send");
  await page.getByLabel("to An address").fill("ada@example.com");
  await page.getByLabel("template").selectOption("invoice");
  await page.getByLabel("Key", { exact: true }).fill("form-1");
  await page.getByRole("button", { name: "Enqueue" }).click();
  await sees(/Accepted\./);
  await open("jobs");
  await open("enqueue?kind=mail.send");
  await page.getByLabel("to An address").fill("ada@example.com");
  await page.getByLabel("template").selectOption("invoice");
  await page.getByLabel("Key", { exact: true }).fill("form-1");
  await sees(/This will be a duplicate: the key stands for a job already/);
  await page.getByRole("button", { name: "Enqueue" }).click();
  await sees(/This key has a job already: it is the same one/);
  await page.getByRole("button", { name: "As JSON" }).click();
  await page.getByLabel("JSON").fill('{"to": 7}');
  await page.getByLabel("Key", { exact: true }).fill("");
  await page.getByRole("button", { name: "Enqueue" }).click();
  await sees(/to/);
  await assertAccessible(page, "a refused payload");
});

test("⌘K finds pages, kinds and jobs; ? lists the keys, which can be switched off", async () => {
  await open("");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find or do" }).waitFor();
  await page.keyboard.type("janit");
  await page
    .getByRole("option", { name: /Janitor/ })
    .first()
    .waitFor();
  await assertAccessible(page, "the palette");
  await page.keyboard.press("Enter");
  await sees(/Recovers what died/);
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await sees(/web-1:4711/);
  await page.keyboard.press("?");
  await page.getByLabel("Single keys do something").uncheck();
  await assertAccessible(page, "help");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  expect(page.url()).toContain("workers");
  await page.evaluate("localStorage.clear()");
});

test("pause holds the view and counts what happens; going on shows it", async () => {
  const { page: own } = await openPage(browser, "desktop", "light");
  await own.goto(`${scene.url}/#/jobs?q=kind:mail.send`);
  await settled(own);
  await own.getByRole("button", { name: /Live/ }).click();
  const before = await own.locator("main tbody tr a").first().getAttribute("href");
  await fetch(`${scene.url}/api/v1/jobs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ kind: "mail.send", payload: { to: "new@example.com", template: "invoice" } }),
  });
  await own.getByRole("button", { name: /Paused · \d+ changes? waiting/ }).waitFor();
  expect(await own.locator("main tbody tr a").first().getAttribute("href")).toBe(before);
  await own.getByRole("button", { name: /Paused/ }).click();
  await expect.poll(() => own.locator("main tbody tr a").first().getAttribute("href")).not.toBe(before);
  await own.close();
});

test("a worker is stopped after a question, and is gone", async () => {
  await open("workers");
  await page.getByRole("button", { name: "Stop web-1:4711" }).click();
  await assertAccessible(page, "the question before a stop");
  await page.getByRole("dialog").getByRole("button", { name: "Stop the worker" }).click();
  await expect.poll(() => page.locator(".toasts").textContent()).toMatch(/web-1:4711 ends when what runs in it has/);
  await sees(/No worker is there\./);
  const { entries } = await api<{ entries: { action: string; caller: string }[] }>("audit");
  for (const action of ["stopWorker", "releaseJob"]) {
    expect(entries).toContainEqual(expect.objectContaining({ action, caller: "local" }));
  }
});
