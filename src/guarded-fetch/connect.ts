// Connections that cannot lead inside. The name is looked up once, for this connection; every address that it has is
// checked, and the socket gets those and no others. So there is no moment between the check and the use in which the
// name could come to mean something else (DNS rebinding).
import { lookup as lookupName, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { isAllowedAddress } from "./address.ts";
import { refusedAddress } from "./check-url.ts";
import type { Limits } from "./options.ts";

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

export const resolveName: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    lookupName(hostname, { all: true, verbatim: true }, (error, addresses) => {
      if (error) reject(error);
      else resolve(addresses);
    });
  });

export function makeConnect({ allow, connectTimeoutMs }: Limits, resolve: Resolve): buildConnector.connector {
  const lookup: LookupFunction = (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        // One that is inside spoils them all: whoever mixes them means no good, and one of them would be chosen by luck.
        const inside = addresses.find(({ address }) => !isAllowedAddress(address, allow));
        const [first] = addresses;
        if (inside) callback(refusedAddress(hostname, inside.address), "", 0);
        else if (first && options.all) callback(null, addresses);
        else if (first) callback(null, first.address, first.family);
        else callback(Object.assign(new Error(`${hostname} has no address`), { code: "ENOTFOUND" }), "", 0);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, "", 0),
    );
  };
  const connect = buildConnector({ timeout: connectTimeoutMs, lookup, maxCachedSessions: 0 });
  return (options, callback) => {
    const { hostname } = options;
    // For these nothing is looked up.
    if (isIP(hostname) !== 0 && !isAllowedAddress(hostname, allow)) return callback(refusedAddress(hostname), null);
    connect(options, (...args) => {
      const [error, socket] = args;
      const address = socket?.remoteAddress;
      if (error !== null || (address !== undefined && isAllowedAddress(address, allow))) return callback(...args);
      socket?.destroy();
      callback(refusedAddress(hostname, address ?? "an unknown address"), null);
    });
  };
}
