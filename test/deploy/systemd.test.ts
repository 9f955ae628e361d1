// The units: systemd's own check of them where there is one, and what we promise. They are not started here.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXIT } from "#src/cli/exit-codes.js";
import { files, longestStopSeconds, read } from "./files.ts";

const units = files.filter((file) => file.endsWith(".service"));

function analyze(args: (folder: string) => string[]) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-units-"));
  try {
    for (const file of units) {
      // It looks whether the program is there; and a template needs an instance.
      const text = read(file).replaceAll("/usr/bin/node", process.execPath);
      writeFileSync(join(folder, file.replace("systemd/", "").replace("@.", "@7071.")), text);
    }
    return spawnSync("systemd-analyze", args(folder), { encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
const isThere = spawnSync("systemd-analyze", ["--version"]).status === 0;

test("systemd-analyze finds nothing wrong, and little that is exposed", ({ skip }) => {
  if (!isThere) skip("systemd-analyze is not installed; Debian has it in the package systemd");
  const names = ["holdfast.service", "holdfast-worker@7071.service", "holdfast-migrate.service"];
  const verified = analyze((folder) => ["verify", "--man=no", ...names.map((name) => join(folder, name))]);
  expect(`${verified.stdout}${verified.stderr}`).toBe("");
  expect(verified.status).toBe(0);
  const exposed = analyze((folder) => ["security", "--offline=true", "--threshold=20", join(folder, names[0]!)]);
  // Older ones cannot look at a file.
  if (!/unrecognized option/.test(exposed.stderr)) expect(exposed).toMatchObject({ status: 0 });
});

test("what runs for long has time to stop and comes back, but not with a wrong setting", () => {
  expect(units).toHaveLength(3);
  for (const file of units.filter((name) => !name.includes("migrate"))) {
    const value = (key: string): string | undefined => new RegExp(`^${key}=(.*)$`, "m").exec(read(file))?.[1];
    expect(Number(value("TimeoutStopSec"))).toBeGreaterThan(longestStopSeconds());
    expect(value("KillSignal")).toBe("SIGTERM");
    expect(value("Restart")).toBe("on-failure");
    expect(value("RestartPreventExitStatus")).toBe(String(EXIT.usage));
  }
});
