// Where a server may listen: which address a host means, whether that needs a token, and sentences for what the system
// says when the port cannot be had.
import { lookup } from "node:dns/promises";
import { createServer as createProbe, isIP, type Server } from "node:net";
import { OptionInvalid } from "../errors.ts";
import { isLoopback } from "./browsers.ts";
import { PortUnavailable } from "./port-unavailable.ts";

export interface Place {
  host: string;
  port: number;
}

/** The address to listen on. */
export async function addressOf({ host }: Place): Promise<string> {
  return isIP(host) === 0 ? await look(host) : host;
}

/** Without any token, only the embedded tier on this machine is open. */
export function refuseOpenDoor(host: string, address: string, tier: "embedded" | "server"): void {
  if (isLoopback(address) && tier === "embedded") return;
  const why = isLoopback(address)
    ? "The database is a server's, and there is no token."
    : `The host ${host} can be reached by other machines, and there is no token.`;
  const otherwise = isLoopback(address) ? "" : " Or use the host 127.0.0.1.";
  throw new OptionInvalid(
    why,
    `Make one with \`holdfast token create --name me --role admin\`, or set HOLDFAST_TOKEN to a long random text (openssl rand -hex 32 makes one).${otherwise}`,
  );
}

/** Throws what serve() would throw, before anything else is started. */
export async function checkPlace(place: Place): Promise<void> {
  const address = await addressOf(place);
  const probe = createProbe();
  await listen(probe, place, address);
  await new Promise((resolve) => probe.close(resolve));
}

export function listen(server: Server, { host, port }: Place, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(whyNot(error, host, port)));
    server.listen({ host: address, port, exclusive: true }, () => {
      server.removeAllListeners("error");
      // A connection that could not be accepted (no file descriptors left) must not end the process.
      server.on("error", () => {});
      resolve();
    });
  });
}

async function look(host: string): Promise<string> {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    const hint = "Use a name or an address of this machine.";
    throw new OptionInvalid(`The host ${JSON.stringify(host)} has no address.`, hint, { cause: error });
  }
}

function whyNot(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new PortUnavailable(
        `Port ${port} on ${host} is in use by another process.`,
        `Stop that process, or choose another port: --port ${port + 1} or HOLDFAST_PORT=${port + 1}.`,
        error,
      );
    case "EACCES":
      return new PortUnavailable(
        `This user may not listen on port ${port}.`,
        "Choose a port above 1023, with --port or HOLDFAST_PORT.",
        error,
      );
    case "EADDRNOTAVAIL":
      return new PortUnavailable(
        `The host ${host} is not an address of this machine.`,
        "Use 127.0.0.1, or 0.0.0.0 for all of its addresses, with --host or HOLDFAST_HOST.",
        error,
      );
    default:
      return error;
  }
}
