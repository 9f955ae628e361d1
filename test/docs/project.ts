// A folder like a user's project: `holdfast` and everything that this repository has installed can be imported, and there is
// nothing else in it.
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { QUICK_ENGINE } from "../support/quick-engine.ts";
import { quickFolder } from "../support/quick-folder.ts";
import { root } from "./pages.ts";

export interface Project {
  readonly folder: string;
  write(path: string, content: string | Uint8Array): void;
  /** Resolves with what it printed if it ends with 0; rejects with it otherwise. */
  run(command: string, args: string[], env: Record<string, string>): Promise<string>;
  remove(): void;
}

export function makeProject(): Project {
  const folder = realpathSync(quickFolder("holdfast-docs-"));
  const modules = join(folder, "node_modules");
  mkdirSync(modules);
  const link = (name: string, target: string): void => symlinkSync(target, join(modules, name));
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (!name.startsWith(".") && name !== "holdfast") link(name, join(root, "node_modules", name));
  }
  link("holdfast", root);
  symlinkSync(join(root, "apps"), join(folder, "apps"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const program = `exec ${JSON.stringify(process.execPath)} ${QUICK_ENGINE.join(" ")} ${JSON.stringify(join(root, "dist/cli/main.js"))} "$@"\n`;
  writeFileSync(join(bin, "holdfast"), `#!/bin/sh\n${program}`);
  writeFileSync(join(bin, "npx"), `#!/bin/sh\n[ "$1" = holdfast ] || exit 127\nshift\n${program}`);
  // As `curl -f`, with the token of the server: a refusal must not look like an answer.
  writeFileSync(
    join(bin, "curl"),
    '#!/bin/sh\nexec env PATH="$REAL_PATH" curl -fsS -H "authorization: Bearer $HOLDFAST_TOKEN" "$@"\n',
  );
  for (const name of ["holdfast", "npx", "curl"]) chmodSync(join(bin, name), 0o755);
  const project: Project = {
    folder,
    write: (path, content) => writeFileSync(join(folder, path), content),
    run: (command, args, env) =>
      new Promise((resolve, reject) => {
        const kept = Object.entries(process.env).filter(
          ([name]) => !/^(HOLDFAST_|DATABASE_URL|NODE_ENV|VITEST|FORCE_COLOR|NODE_OPTIONS)/.test(name),
        );
        const child = spawn(command, args, {
          cwd: folder,
          env: {
            ...Object.fromEntries(kept),
            PATH: `${bin}${delimiter}${process.env["PATH"]}`,
            REAL_PATH: process.env["PATH"],
            ...env,
          },
          stdio: ["ignore", "pipe", "pipe"],
        });
        let output = "";
        for (const stream of [child.stdout, child.stderr]) stream.on("data", (more) => (output += String(more)));
        const late = setTimeout(() => {
          output += "\nIt did not end within 60 s.";
          child.kill("SIGKILL");
        }, 60_000);
        child.once("close", (code) => {
          clearTimeout(late);
          if (code === 0) resolve(output);
          else reject(new Error(`It ended with ${code}:\n${output}`));
        });
      }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
  project.write("package.json", JSON.stringify({ private: true, type: "module" }));
  return project;
}
