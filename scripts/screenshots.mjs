// `npm run screenshots [-- folder [screens]]`: every screen of the dashboard with sample data, on a desktop and on a phone,
// light and dark, as pictures. For whoever changes how something looks. `-- --pages` makes those of README.md and docs/.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launchChromium } from "../test/dashboard/chromium.mjs";
import { build, install, root } from "./set-up.mjs";

install();
build();
const forPages = process.argv[2] === "--pages";
const folder = forPages ? join(root, "docs/images") : (process.argv[2] ?? join(tmpdir(), "holdfast-screenshots"));
mkdirSync(folder, { recursive: true });
const only = forPages ? "^(overview|batch|job-report)$" : process.argv[3];

const child = spawn(process.execPath, [join(root, "test/dashboard/children/scene.mjs")], {
  stdio: ["ignore", "pipe", "inherit"],
});
const { url } = await new Promise((resolve, reject) => {
  let text = "";
  child.stdout.on("data", (more) => {
    text += more;
    if (text.includes("\n")) resolve(JSON.parse(text));
  });
  child.once("exit", (code) => reject(new Error(`The scene ended with ${code}`)));
});
const dead = (await (await fetch(`${url}/api/v1/jobs?status=dead&kind=payments.charge&limit=1`)).json()).jobs[0];
const running = (await (await fetch(`${url}/api/v1/jobs?status=running`)).json()).jobs[0];
const report = (await (await fetch(`${url}/api/v1/jobs?kind=reports.build`)).json()).jobs[0];
const batch = (
  await fetch(`${url}/api/v1/batches`)
    .then((answer) => (answer.ok ? answer.json() : null))
    .catch(() => null)
)?.batches?.[0];
const PLACES = {
  overview: forPages ? "?range=15m" : "",
  queues: "queues",
  queue: "queues/payments",
  jobs: "jobs",
  dead: "dead",
  errors: "errors",
  "job-dead": `jobs/${dead.id}`,
  "job-running": `jobs/${running.id}`,
  "job-report": `jobs/${report.id}`,
  ...(batch ? { batches: "batches", batch: `batches/${batch.id}` } : {}),
  workers: "workers",
  inbox: "inbox",
  recipient: "inbox/ws-17",
  actions: "actions",
  janitor: "janitor",
  enqueue: "enqueue",
  system: "system",
};
await fetch(`${url}/api/v1/actions`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ verb: "retry", filter: { kind: "articles.import" }, perMinute: 1 }),
});

const browser = await launchChromium();
try {
  for (const [size, viewport] of Object.entries({
    desktop: { width: 1280, height: 800 },
    ...(forPages ? {} : { phone: { width: 320, height: 640 } }),
  })) {
    for (const theme of ["light", "dark"]) {
      const page = await browser.newPage({ viewport, colorScheme: theme });
      for (const [name, place] of Object.entries(PLACES)) {
        if (only && !name.match(only)) continue;
        await page.goto(`${url}/#/${place}`);
        // What is there when the first answers have come.
        await page
          .waitForFunction(() => !document.querySelector("main")?.textContent?.includes("Loading …"), undefined, {
            timeout: 5_000,
          })
          .catch(() => undefined);
        await page.waitForTimeout(250);
        const file = forPages ? `${name}-${theme}.png` : `${name}-${size}-${theme}.png`;
        await page.screenshot({ path: join(folder, file), fullPage: !forPages });
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
  child.kill("SIGTERM");
}
process.stdout.write(`${folder}\n`);
