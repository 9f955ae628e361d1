// The workflows, as far as they can be checked without GitHub: the syntax, the keys and the expressions by GitHub's own
// parser, and what we want of them. What is not checked: that an action's inputs exist, and that a run succeeds.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type * as Parser from "@actions/workflow-parser";
import { createJiti } from "jiti";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

// Through jiti: it imports JSON in a way that Node itself refuses.
const parser: typeof Parser = await createJiti(import.meta.url, { tryNative: false }).import(
  "@actions/workflow-parser",
);
const root = new URL("../../", import.meta.url);
const folder = new URL(".github/workflows/", root);
const { scripts } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as { scripts: object };

function faultsOf(name: string, content: string): string[] {
  const { context } = parser.parseWorkflow({ name, content }, new parser.NoOperationTraceWriter());
  return context.errors.getErrors().map(String);
}

interface Step {
  uses?: string;
  run?: string;
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { permissions?: Record<string, string>; steps: Step[] }>;
}

test("the parser finds what is wrong", () => {
  const content =
    "on: push\njobs:\n  a:\n    runs-on: x\n    stepz: []\n    steps:\n      - run: echo ${{ matrixx.a }}\n";
  expect(faultsOf("wrong.yml", content)).toEqual([
    expect.stringContaining("Unexpected value 'stepz'"),
    expect.stringContaining("Unrecognized named-value: 'matrixx'"),
  ]);
});

describe.each(readdirSync(fileURLToPath(folder)))("%s", (name) => {
  const content = readFileSync(new URL(name, folder), "utf8");
  const workflow = parse(content) as Workflow;
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

  test("GitHub's parser finds nothing wrong", () => expect(faultsOf(name, content)).toEqual([]));

  test("actions are pinned to a commit, with the version beside it", () => {
    const uses = content.split("\n").filter((line) => /\buses:/.test(line));
    expect(uses.length).toBe(steps.filter((step) => step.uses).length);
    for (const line of uses) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test("what it runs is there", () => {
    const commands = steps.flatMap((step) => step.run ?? []);
    expect(commands.length).toBeGreaterThan(2);
    for (const [, script = ""] of commands.join("\n").matchAll(/npm run (?:--silent )?([\w:-]+)/g))
      expect(scripts).toHaveProperty([script]);
  });

  test("it may do no more than it needs, and no outside text becomes a command", () => {
    expect(Object.values(workflow.permissions).filter((access) => access === "write")).toEqual([]);
    const writing = Object.values(workflow.jobs).flatMap((job) =>
      Object.entries(job.permissions ?? {}).filter(([, access]) => access === "write"),
    );
    expect(writing).toEqual(name === "release.yml" ? [["id-token", "write"]] : []);
    for (const { run = "" } of steps) expect(run).not.toMatch(/\$\{\{\s*(github|inputs)\b/);
  });
});

test("the release publishes with provenance, after everything was checked, and keeps no token", () => {
  const content = readFileSync(new URL("release.yml", folder), "utf8");
  const { steps } = (parse(content) as Workflow).jobs["publish"]!;
  const place = (pattern: RegExp): number => steps.findIndex(({ run = "" }) => pattern.test(run));
  expect(place(/^npm publish --provenance/)).toBeGreaterThan(place(/^npm test/));
  expect(place(/^npm test/)).toBeGreaterThan(0);
  expect(place(/^npm publish/)).toBeGreaterThan(place(/^npm run --silent sbom/));
  expect(content).not.toMatch(/secrets\.|NODE_AUTH_TOKEN/);
});
