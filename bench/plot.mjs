// Plots of one comparison: a bar for each contender, one SVG for each figure, beside the results' file. Text in the system's
// font, colours that hold on light and dark ground.
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const PLOTS = [
  { key: "steady", title: "Steady produce and consume, jobs/s" },
  { key: "heldLast", title: "The same after a minute of a held snapshot, jobs/s" },
  { key: "drain", title: "Drain of 100,000 jobs, jobs/s" },
  { key: "enqueue128", title: "Single durable enqueues, 128 callers, jobs/s" },
  { key: "bulk", title: "Bulk enqueue, rows/s" },
  { key: "latency-p50", title: "Enqueue to start, idle, p50, ms (less is better)", digits: 2 },
];
const [WIDTH, BAR, GAP, LEFT, TOP] = [720, 26, 10, 150, 44];

/** Returns the plots that there are now, with their titles. */
export function plotResults(resultsFile, { contenders, figures }) {
  const folder = resultsFile.replace(/\.json$/, "");
  const plots = [];
  for (const { key, title, digits = 0 } of PLOTS) {
    const bars = contenders.flatMap((name) => (figures[name][key] === undefined ? [] : [[name, figures[name][key]]]));
    if (bars.length < 2) continue;
    mkdirSync(folder, { recursive: true });
    const path = join(folder, `${key}.svg`);
    writeFileSync(path, bar(title, bars, digits));
    plots.push({ title, path });
  }
  process.stdout.write(`Plots in bench/results/${basename(folder)}/\n`);
  return plots;
}

function bar(title, bars, digits) {
  const longest = Math.max(...bars.map(([, value]) => value));
  const height = TOP + bars.length * (BAR + GAP) + 10;
  const rows = bars.map(([name, value], index) => {
    const y = TOP + index * (BAR + GAP);
    const width = Math.max(2, (value / longest) * (WIDTH - LEFT - 110));
    const text = value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
    return `<text x="${LEFT - 10}" y="${y + 18}" text-anchor="end">${name}</text>
<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="3" fill="${name === "holdfast" ? "#0f7b6c" : "#8a94a6"}"/>
<text x="${(LEFT + width + 8).toFixed(1)}" y="${y + 18}">${text}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${title}">
<style>text { font: 14px system-ui, sans-serif; fill: #57606f } .title { font-weight: 600 }</style>
<text x="${LEFT}" y="24" class="title">${title}</text>
${rows.join("\n")}
</svg>
`;
}
