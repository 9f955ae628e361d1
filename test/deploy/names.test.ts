// Whatever deploy/ names of Holdfast is there: variables, commands, flags, files.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { main, run } from "../cli/holdfast.ts";
import { files, folder, read, root } from "./files.ts";

const known = new Set(
  [...readFileSync(join(root, "src/cli/env.ts"), "utf8").matchAll(/read\("([A-Z_]+)"/g)].map(([, name = ""]) => name),
);

test("every variable is one that the command line reads", () => {
  expect(known.size).toBeGreaterThan(10);
  const named = files.flatMap((file) =>
    [...read(file).matchAll(/\b(?:HOLDFAST|QUEUE)_[A-Z_]+\b|\bDATABASE_URL\b/g)].map(([name]) => `${file}: ${name}`),
  );
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((line) => !known.has(line.split(": ")[1]!))).toEqual([]);
});

/** The words after the program, wherever a file starts Holdfast. */
function commands(): string[][] {
  const { services } = parse(read("compose.yaml"), { merge: true }) as {
    services: Record<string, { image: string; command: string[] }>;
  };
  const composed = Object.values(services).flatMap(({ image, command }) => (image === "holdfast-app" ? [command] : []));
  const pods = files
    .filter((file) => file.startsWith("kubernetes/"))
    .flatMap((file) => parseAllDocuments(read(file)))
    .flatMap((document) => {
      const { spec } = document.toJS() as { spec?: { template?: { spec: { containers: { args: string[] }[] } } } };
      return (spec?.template?.spec.containers ?? []).map(({ args }) => args);
    });
  const units = files
    .filter((file) => file.startsWith("systemd/"))
    .map((file) => /^ExecStart=\/usr\/bin\/node (\S+) (.*)$/m.exec(read(file))!.slice(1))
    .map(([program = "", words = ""]) => {
      expect(program).toBe("node_modules/holdfast/dist/cli/main.js");
      return words.split(" ");
    });
  const image = /^CMD (\[.*\])$/m.exec(read("Dockerfile"))![1]!;
  return [...composed, ...pods, ...units, JSON.parse(image) as string[]];
}

test("every command and flag is one of the command line", async () => {
  const all = commands();
  expect(all.length).toBeGreaterThan(9);
  expect(new Set(all.map(([name]) => name))).toEqual(new Set(["start", "worker", "migrate"]));
  for (const words of new Map(all.map((line) => [line.join(" "), line])).values()) {
    const [name = "", ...rest] = words;
    const help = await run([name, "--help"]);
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining(`Usage: holdfast ${name}`) });
    for (const flag of rest.filter((word) => word.startsWith("-"))) expect(help.stdout).toContain(`${flag} `);
  }
  // Where the image and the units look for it.
  expect(main).toBe(join(root, "dist/cli/main.js"));
});

test("every file that one of them mounts or names is there", () => {
  const { services } = parse(read("compose.yaml"), { merge: true }) as {
    services: Record<string, { volumes?: string[]; build?: { context: string; dockerfile: string } }>;
  };
  const mounted = Object.values(services)
    .flatMap(({ volumes = [] }) => volumes)
    .map((volume) => volume.split(":")[0]!)
    .filter((from) => from.startsWith("."));
  expect(mounted.length).toBe(5);
  expect(mounted.filter((from) => !existsSync(join(folder, from)))).toEqual([]);
  const { context, dockerfile } = services["server"]!.build!;
  expect(join(folder, context, dockerfile)).toBe(join(folder, "Dockerfile"));
  for (const file of files.filter((name) => name.endsWith("kustomization.yaml"))) {
    const { resources } = parse(read(file)) as { resources: string[] };
    expect(resources.filter((name) => !existsSync(join(folder, file, "..", name)))).toEqual([]);
  }
});

test("docs/deploying.md speaks of every file, and names only variables that there are", () => {
  const page = readFileSync(join(root, "docs/deploying.md"), "utf8");
  const tops = new Set(
    files.map((file) =>
      file
        .split("/")
        .slice(0, file.startsWith("kubernetes/") ? 2 : 1)
        .join("/"),
    ),
  );
  expect([...tops].filter((name) => !page.includes(`deploy/${name}`))).toEqual([]);
  const variables = [...page.matchAll(/\bHOLDFAST_[A-Z_]+\b/g)].map(([name]) => name);
  const codes = readFileSync(join(root, "docs/errors.md"), "utf8");
  expect(variables.filter((name) => !known.has(name) && !codes.includes(`## \`${name}\``))).toEqual([]);
});
