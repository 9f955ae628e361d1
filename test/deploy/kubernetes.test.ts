// The Kubernetes manifests against the API's own types and schemas: unknown and misspelt fields by the compiler, formats and
// required fields by the schemas; and what we promise of them. What a cluster does with them is not checked.
import { join } from "node:path";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import { Deployment } from "kubernetes-models/apps/v1";
import { Job } from "kubernetes-models/batch/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { Service } from "kubernetes-models/v1";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { files, longestStopSeconds, read, root } from "./files.ts";

type Fields = Record<string, unknown>;
interface Manifest extends Fields {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
}

const MODELS: Record<string, [from: string, model: new (data: never) => { validate(): void }]> = {
  "apps/v1 Deployment": ["kubernetes-models/apps/v1", Deployment],
  "batch/v1 Job": ["kubernetes-models/batch/v1", Job],
  "policy/v1 PodDisruptionBudget": ["kubernetes-models/policy/v1", PodDisruptionBudget],
  "v1 Service": ["kubernetes-models/v1", Service],
  "keda.sh/v1alpha1 ScaledObject": ["@kubernetes-models/keda/keda.sh/v1alpha1", ScaledObject],
};

const manifests = files
  .filter((file) => file.startsWith("kubernetes/") && !file.endsWith("kustomization.yaml"))
  .flatMap((file) => parseAllDocuments(read(file)).map((document) => document.toJS() as Manifest));

/** What the compiler says about these as values of the API's types; an unknown field is an error there. */
function compile(values: readonly Manifest[]): string[] {
  const name = join(root, "test/deploy/manifests.ts");
  const lines = values.map((value, index) => {
    const [from] = MODELS[`${value.apiVersion} ${value.kind}`]!;
    return `export const v${index}: import("${from}").I${value.kind} = ${JSON.stringify(value)};`;
  });
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (path) => path === name || fileExists(path);
  host.getSourceFile = (path, ...rest) =>
    path === name ? ts.createSourceFile(path, lines.join("\n"), rest[0]) : getSourceFile(path, ...rest);
  return ts
    .getPreEmitDiagnostics(ts.createProgram([name], options, host))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "));
}

test("the manifests fit the API's types, and a misspelt field does not", { timeout: 60_000 }, () => {
  expect(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
    "Deployment holdfast-server",
    "Deployment holdfast-worker",
    "Job holdfast-migrate",
    "PodDisruptionBudget holdfast-server",
    "PodDisruptionBudget holdfast-worker",
    "ScaledObject holdfast-worker",
    "Service holdfast",
  ]);
  expect(compile(manifests)).toEqual([]);
  const misspelt = JSON.parse(JSON.stringify(manifests).replaceAll("livenessProbe", "livenessProbes")) as Manifest[];
  expect(compile(misspelt).join()).toContain("livenessProbes");
});

test("the manifests fit the API's schemas", () => {
  for (const manifest of manifests) {
    const [, Model] = MODELS[`${manifest.apiVersion} ${manifest.kind}`]!;
    expect(() => new Model(manifest as never).validate()).not.toThrow();
  }
});

interface Container extends Fields {
  image: string;
  args: string[];
  env?: { name: string; value: string }[];
  ports?: { name: string; containerPort: number }[];
  lifecycle?: { preStop: { exec: { command: string[] } } };
}
interface Pod extends Fields {
  terminationGracePeriodSeconds?: number;
  containers: [Container];
}
const labelsOf = (manifest: Manifest) =>
  (manifest["spec"] as { template: { metadata: { labels: object } } }).template.metadata.labels;
const podOf = (manifest: Manifest): Pod => (manifest["spec"] as { template: { spec: Pod } }).template.spec;
const find = (kind: string, name: string): Manifest =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)!;

describe.each(["holdfast-server", "holdfast-worker"])("%s", (name) => {
  const manifest = find("Deployment", name);
  const pod = podOf(manifest);
  const [container] = pod.containers;

  test("has longer to stop than a stop takes", () => {
    const wait = Number(/\d+/.exec(container.lifecycle?.preStop.exec.command.at(-1)?.split(",")[1] ?? "0")![0]) / 1_000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(wait + longestStopSeconds());
    // The flag would make it longer.
    expect(container.args).not.toContain("--grace");
  });

  test("is asked where it answers", () => {
    const [port] = container.ports!;
    const given = container.env?.find((variable) => variable.name === "HOLDFAST_HEALTH_PORT")?.value ?? "7070";
    expect(String(port!.containerPort)).toBe(given);
    const probe = (path: string) => expect.objectContaining({ httpGet: { path, port: port!.name } });
    expect(container).toMatchObject({
      startupProbe: probe("/livez"),
      livenessProbe: probe("/livez"),
      readinessProbe: probe("/readyz"),
    });
  });

  test("its selectors, and those of its budget, find its pods", () => {
    const budget = find("PodDisruptionBudget", name);
    for (const { spec } of [manifest, budget] as unknown as { spec: { selector: { matchLabels: object } } }[])
      expect(labelsOf(manifest)).toMatchObject(spec.selector.matchLabels);
  });
});

test("the service finds the server and its port", () => {
  const { selector, ports } = find("Service", "holdfast")["spec"] as {
    selector: object;
    ports: { targetPort: string }[];
  };
  const server = find("Deployment", "holdfast-server");
  expect(labelsOf(server)).toMatchObject(selector);
  expect(podOf(server).containers[0].ports!.map((port) => port.name)).toContain(ports[0]!.targetPort);
});

test("no pod has more rights than it needs", () => {
  const pods = manifests.filter(({ kind }) => kind === "Deployment" || kind === "Job").map(podOf);
  expect(pods).toHaveLength(3);
  for (const pod of pods) {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          resources: { limits: { memory: expect.any(String) } },
        },
      ],
    });
  }
});

test("workers are scaled by figures that there are", () => {
  const { scaleTargetRef, triggers } = find("ScaledObject", "holdfast-worker")["spec"] as {
    scaleTargetRef: { name: string };
    triggers: { metadata: { query: string } }[];
  };
  expect(find("Deployment", scaleTargetRef.name)).toBeDefined();
  const named = triggers[0]!.metadata.query.match(/holdfast_\w+/g)!;
  expect(named).toEqual(["holdfast_queue_oldest_ready_age_seconds", "holdfast_queue_paused"]);
});
