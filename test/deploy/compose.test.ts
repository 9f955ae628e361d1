// compose.yaml, as far as it can be checked without an engine: that it hangs together, and that nothing in it is weaker than we
// promise. There is no schema of compose files on npm that is kept up, so the keys are a list here.
import { expect, test } from "vitest";
import { parse } from "yaml";
import { read, longestStopSeconds } from "./files.ts";

interface Service {
  image: string;
  profiles?: string[];
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
  volumes?: string[];
  secrets?: string[];
  ports?: string[];
  restart: string;
  stop_grace_period?: string;
  init?: boolean;
  read_only?: boolean;
  cap_drop?: string[];
}
interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  secrets: Record<string, { environment: string }>;
}

const file = parse(read("compose.yaml"), { merge: true }) as Compose & Record<string, unknown>;
const services = Object.entries(file.services);
const ours = services.filter(([, { image }]) => image === "holdfast-app");

/** Of https://github.com/compose-spec/compose-spec, those that we use. */
const TOP = ["name", "services", "volumes", "secrets"];
const KEYS =
  "image build environment init stop_grace_period restart read_only tmpfs cap_drop security_opt volumes healthcheck shm_size command depends_on ports deploy profiles secrets".split(
    " ",
  );

test("only keys that compose knows", () => {
  expect(Object.keys(file).filter((key) => !TOP.includes(key) && !key.startsWith("x-"))).toEqual([]);
  for (const [name, service] of services)
    expect([name, Object.keys(service).filter((key) => !KEYS.includes(key))]).toEqual([name, []]);
});

test("what a service waits for is there and can come true; volumes and secrets are declared", () => {
  for (const [name, { depends_on = {}, volumes = [], secrets = [] }] of services) {
    for (const [other, { condition }] of Object.entries(depends_on)) {
      const awaited = file.services[other]!;
      expect(awaited, `${name} waits for ${other}`).toBeDefined();
      if (condition === "service_completed_successfully") expect(awaited.restart).toBe("no");
      else expect([condition, awaited.healthcheck?.test?.[0]]).toEqual(["service_healthy", "CMD"]);
      // Who is in no profile must not wait for somebody who is.
      expect(awaited.profiles ?? service(name).profiles ?? []).toEqual(service(name).profiles ?? []);
    }
    for (const volume of volumes.map((text) => text.split(":")[0]!))
      if (!volume.startsWith(".")) expect(file.volumes).toHaveProperty([volume]);
    for (const secret of secrets) expect(file.secrets).toHaveProperty([secret]);
  }
});
const service = (name: string): Service => file.services[name]!;

test("PostgreSQL and Holdfast come without a profile, monitoring has its own", () => {
  const inProfile = (profile: string | undefined): string[] =>
    services.filter(([, { profiles }]) => profiles?.[0] === profile).map(([name]) => name);
  expect(inProfile(undefined)).toEqual(["postgres", "migrate", "server", "worker"]);
  expect(inProfile("monitoring")).toEqual(["prometheus", "grafana"]);
});

test("Holdfast's containers have time to stop, can write nowhere, and have no rights", () => {
  expect(ours.map(([name]) => name)).toEqual(["migrate", "server", "worker"]);
  for (const [, container] of ours) {
    expect(container).toMatchObject({ init: true, read_only: true, cap_drop: ["ALL"] });
    expect(Number(/^(\d+)s$/.exec(container.stop_grace_period!)?.[1])).toBeGreaterThan(longestStopSeconds());
  }
});

test("nothing is open to other machines, no password is written down, images have a version", () => {
  for (const [name, { ports = [], environment = {}, image }] of services) {
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
    for (const [key, value] of Object.entries(environment))
      if (/PASSWORD|TOKEN|URL/.test(key)) expect(`${name} ${key} ${value}`).toMatch(/\$\{[A-Z_]+(:\?|:-)/);
    if (image !== "holdfast-app") expect(image).toMatch(/:v?\d+(\.\d+)*$/);
  }
});

test("Prometheus asks the ports that the containers listen on, with the token that they take", () => {
  const { scrape_configs, rule_files } = parse(read("prometheus.yml")) as {
    scrape_configs: { authorization: object; dns_sd_configs: { names: string[]; port: number }[] }[];
    rule_files: string[];
  };
  const [scrape] = scrape_configs;
  expect(scrape!.authorization).toEqual({ credentials_file: "/run/secrets/holdfast_token" });
  expect(file.secrets["holdfast_token"]).toEqual({ environment: "HOLDFAST_TOKEN" });
  const asked = scrape!.dns_sd_configs.map(({ names: [name], port }) => [name, port]);
  expect(asked).toEqual([
    ["server", Number(service("server").ports![0]!.split(":")[2])],
    ["worker", Number(service("worker").environment!["HOLDFAST_HEALTH_PORT"])],
  ]);
  expect(service("prometheus").volumes!.map((text) => text.split(":")[1])).toContain(rule_files[0]);
});
