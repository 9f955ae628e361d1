// Who has a folder, as a command asks it that wants to talk to that process.
import { once } from "node:events";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findHolder, SOCKET_NAME } from "#src/db/folder-holder.js";

test("a holder that is busy for a second before it answers is found", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "hf-holder-")));
  const holder = {
    pid: 1,
    host: "here",
    since: new Date().toISOString(),
    command: "dev",
    id: "x",
    state: "holding",
    url: null,
  };
  const server = createServer((socket) => void setTimeout(() => socket.end(JSON.stringify(holder)), 1_000));
  const name = "lock-0123456789abcdef.sock";
  expect(name).toMatch(SOCKET_NAME);
  await once(server.listen(join(folder, name)), "listening");
  try {
    expect(await findHolder(folder)).toEqual(holder);
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
});
