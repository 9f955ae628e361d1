// Carries out a Dockerfile without Docker: every stage is a folder, COPY copies into it (without what the .dockerignore names),
// RUN runs there, and the last stage is returned with how its process is to be started. FROM brings no system: the Node and
// the npm of this machine are used, and /app is a folder below a temporary one.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export interface Image {
  workdir: string;
  env: Record<string, string>;
  user: string;
  entrypoint: string[];
  cmd: string[];
  healthcheck: string[];
  stopSignal: string;
}

interface Stage extends Image {
  root: string;
}

export function carryOut(dockerfile: string, ignored: string, context: string, into: string): Image {
  const stages = new Map<string, Stage>();
  const patterns = ignored.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const ignores = (path: string): boolean => patterns.some((pattern) => globToRegExp(pattern).test(path));
  let stage: Stage | undefined;
  for (const { word, rest } of instructions(dockerfile)) {
    if (word === "ARG") continue;
    if (word === "FROM") {
      const name = / AS (\w+)$/.exec(rest)?.[1] ?? "last";
      const root = join(into, name);
      mkdirSync(root);
      stage = { root, workdir: root, env: {}, user: "root", entrypoint: [], cmd: [], healthcheck: [], stopSignal: "" };
      stages.set(name, stage);
      continue;
    }
    if (!stage) throw new Error(`${word} stands before the first FROM.`);
    if (word === "WORKDIR") mkdirSync((stage.workdir = join(stage.root, rest)), { recursive: true });
    else if (word === "ENV") Object.assign(stage.env, Object.fromEntries([rest.split("=")]));
    else if (word === "RUN")
      execFileSync("sh", ["-c", rest], { cwd: stage.workdir, stdio: "pipe", env: { ...process.env, ...QUICKLY } });
    else if (word === "COPY") copy(rest, stage);
    else if (word === "USER") stage.user = rest;
    else if (word === "STOPSIGNAL") stage.stopSignal = rest;
    else if (word === "HEALTHCHECK") stage.healthcheck = JSON.parse(rest.slice(rest.indexOf("CMD ") + 4)) as string[];
    else if (word === "ENTRYPOINT") stage.entrypoint = JSON.parse(rest) as string[];
    else if (word === "CMD") stage.cmd = JSON.parse(rest) as string[];
    else if (word !== "EXPOSE") throw new Error(`Nobody has thought about ${word} yet.`);
  }

  function copy(words: string, to: Stage): void {
    const from = /^--from=(\w+) /.exec(words)?.[1];
    const paths = words.replace(/^--from=\w+ /, "").split(" ");
    const target = paths.pop()!;
    for (const path of paths) {
      const source = from ? join(stages.get(from)!.root, path) : join(context, path);
      const place = target.endsWith("/") ? join(to.workdir, target, path) : join(to.workdir, target);
      mkdirSync(dirname(place), { recursive: true });
      const filter = from ? () => true : (file: string) => !ignores(relative(context, file));
      cpSync(source, place, { recursive: true, filter, verbatimSymlinks: true });
    }
  }
  return stage!;
}

/** What npm has fetched before need not be asked for again. */
const QUICKLY = { npm_config_prefer_offline: "true", npm_config_loglevel: "error" };

function instructions(dockerfile: string): { word: string; rest: string }[] {
  const lines = dockerfile.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  return lines.map((line) => ({ word: line.split(" ")[0]!, rest: line.slice(line.indexOf(" ") + 1).trim() }));
}

/** `*` does not cross a slash; what is in an ignored folder is ignored too. */
function globToRegExp(pattern: string): RegExp {
  const text = pattern.replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`).replaceAll("*", "[^/]*");
  return new RegExp(`^${text}(/|$)`);
}
