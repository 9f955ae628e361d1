// A PostgreSQL with pgvector, from npm alone: PGlite with the extension, behind a socket that speaks PostgreSQL's protocol, for
// tests and measurements. One statement runs at a time, and a transaction has the whole of it to itself.
import { createServer } from "node:net";
import { once } from "node:events";

const SSL = 80877103;
const GSS = 80877104;
const CANCEL = 80877102;
const SETTINGS = { server_version: "18.0", client_encoding: "UTF8", DateStyle: "ISO, MDY", TimeZone: "UTC" };

/** Throws if the extension is not installed here. */
export async function startPgvectorServer() {
  const { PGlite } = await import("@electric-sql/pglite");
  const { vector } = await import("@electric-sql/pglite-pgvector");
  const db = await PGlite.create({ extensions: { vector } });
  const turns = makeTurns(db);
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      sockets.delete(socket);
      turns.leave(socket);
    });
    serve(socket, turns);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `postgres://postgres@127.0.0.1:${server.address().port}/postgres`,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await turns.idle();
      await db.close();
    },
  };
}

/** Whoever is in a transaction goes first; the others in the order in which they came. */
function makeTurns(db) {
  const waiting = [];
  let owner;
  let running;
  const next = () => {
    if (running) return;
    const place = waiting.findIndex(({ socket }) => owner === undefined || socket === owner);
    if (place < 0) return;
    const [{ socket, bytes, answer }] = waiting.splice(place, 1);
    running = db
      .execProtocolRaw(bytes, { syncToFs: false })
      .then((reply) => {
        const isIdle = reply.at(-6) !== 0x5a || reply.at(-1) === 0x49;
        owner = isIdle ? undefined : socket;
        answer(reply);
      })
      .catch(() => socket.destroy())
      .finally(() => {
        running = undefined;
        if (owner?.destroyed) rollBack(owner);
        next();
      });
  };
  const rollBack = (socket) => waiting.unshift({ socket, bytes: message("Q", "rollback\0"), answer: () => undefined });
  return {
    take(socket, bytes, answer) {
      waiting.push({ socket, bytes, answer });
      next();
    },
    leave(socket) {
      if (owner !== socket) return;
      rollBack(socket);
      next();
    },
    idle: async () => await running,
  };
}

function serve(socket, turns) {
  let bytes = Buffer.alloc(0);
  let isStarted = false;
  let group = [];
  socket.on("data", (data) => {
    bytes = Buffer.concat([bytes, data]);
    for (;;) {
      const head = isStarted ? 1 : 0;
      if (bytes.length < head + 4) return;
      const size = head + bytes.readUInt32BE(head);
      if (bytes.length < size) return;
      const part = bytes.subarray(0, size);
      bytes = bytes.subarray(size);
      if (!isStarted) {
        const code = part.readUInt32BE(4);
        if (code === SSL || code === GSS) socket.write("N");
        else if (code === CANCEL) socket.end();
        else {
          isStarted = true;
          socket.write(welcome());
        }
        continue;
      }
      const type = String.fromCharCode(part[0]);
      if (type === "X") return void socket.end();
      group.push(part);
      // Query, Sync, Flush and the end of a copy are answered at once.
      if (!"QSHcf".includes(type)) continue;
      const asked = Buffer.concat(group);
      group = [];
      turns.take(socket, asked, (reply) => socket.writable && socket.write(reply));
    }
  });
}

const message = (type, text) => {
  const body = Buffer.from(text, "binary");
  const head = Buffer.alloc(5);
  head.write(type, 0);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

const welcome = () =>
  Buffer.concat([
    message("R", "\0\0\0\0"),
    ...Object.entries(SETTINGS).map(([name, value]) => message("S", `${name}\0${value}\0`)),
    message("K", "\0\0\0\x01\0\0\0\x01"),
    message("Z", "I"),
  ]);
