// Links against the sample site, while the server is killed with SIGKILL twice and the browser is closed in between.
//
//   npm run storm -w apps/article-import                     500 links, a PostgreSQL of its own
//   STORM_LINKS=100 DATABASE_URL=… npm run storm -w …        another size, another server
//
// A real browser pastes the links and takes the articles. The server is killed while it looks; then the browser is closed,
// the import goes on without it, the server is killed again, and the browser comes back. At the end every link has come to
// what it should, the counters are what the items say, every article that was saved can be read in the browser, and the
// server has none of their texts.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { superviseServer } from "../../../test/support/supervise-server.mjs";
import { launchProfile } from "../../../test/dashboard/chromium.mjs";

const require = createRequire(import.meta.url);
const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..", "..");
const TOKEN = "a-token-of-the-storm";
const SCHEMA = "storm";

/** Of twenty links a few are special: what each must come to. */
function makeLinks(siteUrl, count) {
  const links = [];
  const expected = { saved: 0, "consent-wall": 0, duplicate: 0, error: 0, cancelled: 0 };
  const add = (path, outcome) => {
    links.push(siteUrl + path);
    expected[outcome] += 1;
  };
  for (let n = 1; n <= count; n += 1) {
    if (n % 20 === 5) add(`/missing/${n}`, "error");
    else if (n % 20 === 6) add(`/consent?${n}`, "consent-wall");
    else if (n % 20 === 7) add(`/flaky/${n}`, "saved");
    else if (n % 20 === 8) add(`/paper.pdf?${n}`, "error");
    // The page, and a link that leads to it: whichever is first has it.
    else if (n % 20 === 9) add(`/moved/${n + 1}`, "saved");
    else if (n % 20 === 10) add(`/articles/${n}`, "duplicate");
    else add(`/many/${n}`, "saved");
  }
  return { links, expected };
}

/** Throws if anything is lost, doubled or miscounted. */
export async function storm({ database, siteUrl, links: count = 500, say = () => {} }) {
  const { Client } = require("pg");
  const sql = new Client({ connectionString: database });
  await sql.connect();
  const folder = await mkdtemp(join(tmpdir(), "articles-storm-"));
  const source = join(root, "apps", "article-import", "src", "index.ts");
  await writeFile(
    join(folder, "holdfast.config.ts"),
    `import { defineConfig } from "holdfast";
     import { articleImport } from ${JSON.stringify(source)};
     export default defineConfig({
       schema: "${SCHEMA}", lease: "2s",
       apps: [articleImport({ allowOrigins: [${JSON.stringify(siteUrl)}], hostDelay: "0s", perHost: 10, ladder: ["1s", "1s"] })],
     });`,
  );
  const server = await superviseServer({ cwd: folder, database, token: TOKEN });
  const { links, expected } = makeLinks(siteUrl, count);
  const profile = join(folder, "profile");
  let browser;
  try {
    await server.ready();
    browser = await openBrowser(profile);
    let page = await openPage(browser, server.url);
    await page.click('nav a[href="#/new"]');
    await page.fill("#links", links.join("\n"));
    await page.click("button.main:not([disabled])");
    await page.waitForSelector("#import-state");
    const id = (await page.evaluate("location.hash")).split("/").pop();
    const reached = (part) => progress(sql, id, Math.round(count * part));
    say(`${count} links pasted`);

    await reached(0.15);
    server.kill();
    say("The server was killed while the browser looked");
    await server.ready();
    await reached(0.35);
    await browser.close();
    const takenBefore = await acked(sql, id);
    say(`The browser is closed; ${takenBefore} articles were taken`);
    await reached(0.55);
    server.kill();
    say("The server was killed again");
    await server.ready();
    await reached(0.8);
    if ((await acked(sql, id)) > takenBefore + 3)
      throw new Error("Somebody took articles while the browser was closed");
    browser = await openBrowser(profile);
    page = await openPage(browser, server.url);
    await page.goto(`${server.url}/apps/article-import/#/imports/${id}`);
    say("The browser is back");
    await page.waitForSelector("#import-state.done", { timeout: 120_000 });
    await page.waitForFunction(`${READ_ALL}.then(({ unsettled }) => unsettled === 0)`);
    const kept = await page.evaluate(READ_ALL);
    return { links: count, ...(await judge({ sql, server, id, expected, kept })), takenBefore, kills: server.kills };
  } finally {
    await browser?.close().catch(() => {});
    await server.stop();
    await sql.end();
    await rm(folder, { recursive: true, force: true });
  }
}

async function openBrowser(profile) {
  return await launchProfile(profile, { viewport: { width: 1000, height: 800 }, locale: "en-GB" });
}

async function openPage(browser, url) {
  const page = browser.pages()[0] ?? (await browser.newPage());
  page.setDefaultTimeout(30_000);
  await page.goto(`${url}/apps/article-import/`);
  await page.waitForSelector("#sign-in:not([hidden])");
  await page.fill("#token", TOKEN);
  await page.keyboard.press("Enter");
  await page.waitForSelector("main h1");
  return page;
}

/** Every article of this browser, decrypted: how many there are, under how many addresses, how many have a text. */
const READ_ALL = `(async () => {
  const { openVault } = await import("/apps/article-import/vault.js");
  const vault = await openVault("me");
  const list = await vault.list();
  let texts = 0;
  for (const { id } of list) if ((await vault.read(id)).html.length > 100) texts += 1;
  const addresses = new Set(list.map(({ url }) => url)).size;
  return { articles: list.length, addresses, texts, unsettled: (await vault.unsettled()).length };
})()`;

/** Until the server's part of so many is over. */
async function progress(sql, id, count) {
  const newest = `select handed, ended from ${SCHEMA}.batch_log where batch_id = $1 order by n desc limit 1`;
  const end = Date.now() + 120_000;
  for (;;) {
    const [log] = (await sql.query(newest, [id])).rows;
    const ended = Object.values(log?.ended ?? {}).reduce((sum, each) => sum + Number(each), 0);
    if (Number(log?.handed ?? 0) + ended >= count) return;
    if (Date.now() > end) throw new Error(`Still not ${count}: ${JSON.stringify(log)}`);
    await sleep(30);
  }
}

async function acked(sql, id) {
  const text = `select count(*) as n from ${SCHEMA}.batch_outcomes where batch_id = $1 and outcome in ('saved', 'consent-wall')`;
  return Number((await sql.query(text, [id])).rows[0].n);
}

async function judge({ sql, server, id, expected, kept }) {
  const wrong = [];
  const headers = { authorization: `Bearer ${TOKEN}` };
  const call = async (path) => (await fetch(`${server.url}/article-import${path}`, { headers })).json();
  const { counts, total, state } = await call(`/imports/${id}`);
  const seen = {};
  for (let cursor = "0"; cursor !== null;) {
    const { items, next } = await call(`/imports/${id}/items?cursor=${cursor}`);
    for (const item of items) seen[item.state] = (seen[item.state] ?? 0) + 1;
    cursor = next;
  }
  if (state !== "done") wrong.push(`the import is ${state}`);
  for (const name of new Set([...Object.keys(counts), ...Object.keys(seen)])) {
    const [counted, there, wanted] = [counts[name] ?? 0, seen[name] ?? 0, expected[name] ?? 0];
    if (counted !== there) wrong.push(`${name}: counted ${counted}, there are ${there}`);
    if (counted !== wanted) wrong.push(`${name}: ${counted}, expected ${wanted}`);
  }
  if (Object.values(seen).reduce((sum, n) => sum + n, 0) !== total) wrong.push("items are missing");
  const articles = expected.saved + expected["consent-wall"];
  if (kept.articles !== articles || kept.addresses !== articles || kept.texts !== articles || kept.unsettled !== 0) {
    wrong.push(`the browser has ${JSON.stringify(kept)}, expected ${articles}`);
  }
  const count = async (from) => (await sql.query(`select count(*)::int as n from ${from}`)).rows[0].n;
  // What a killed process had begun to hand back is a draft that nobody sees, for an hour.
  const drafts = await count(`${SCHEMA}.parcel_drafts`);
  const texts = (await count(`${SCHEMA}.parcel_chunks`)) - drafts;
  if (texts > 0 || drafts > 20) wrong.push(`${texts} texts and ${drafts} drafts are left on the server`);
  const jobs = await count(`${SCHEMA}.jobs`);
  if (jobs !== 0) wrong.push(`${jobs} jobs are left over`);
  if (wrong.length > 0) throw new Error(`${wrong.length} wrong: ${wrong.slice(0, 10).join("; ")}`);
  return { counts, kept, drafts };
}

async function runAlone() {
  const { startPostgres } = await import(join(root, "test", "support", "postgres-server.mjs"));
  const { createJiti } = await import("jiti");
  const { SampleSite } = await createJiti(import.meta.url).import(join(here, "..", "src", "sample", "sample-site.ts"));
  const say = (text) => process.stdout.write(`${text}\n`);
  const server = process.env.DATABASE_URL ? undefined : await startPostgres();
  const site = await SampleSite.start({ port: 0 });
  const began = Date.now();
  try {
    const database = process.env.DATABASE_URL ?? server.url("postgres");
    const result = await storm({ database, siteUrl: site.url, links: Number(process.env.STORM_LINKS ?? 500), say });
    say(`${JSON.stringify(result)}; ${site.times.length} requests; ${Math.round((Date.now() - began) / 1_000)} s`);
    say("Every link came to what it should, once; the browser has every article, the server none of their texts.");
  } finally {
    await site.close();
    await server?.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runAlone();
