// Which addresses may be connected to: those of the public internet, and what the operator allows besides. What is not
// surely public is refused.
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { OptionInvalid } from "../errors.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = [Address, number];

/** All that is assigned to the public internet; an address that carries an IPv4 one (`::7f00:1`) is outside of it. */
const GLOBAL_IPV6: Network = [ipaddr.parse("2000::"), 3];
/** Azure's own service for its machines. It is the only metadata address that looks public. */
const AZURE_WIRE_SERVER = "168.63.129.16";

/** Of a numeric address, as a connection or a look-up gives it. Anything else is not public. */
export function isPublicAddress(address: string): boolean {
  const parsed = parse(address);
  if (!parsed || parsed.range() !== "unicast" || parsed.toString() === AZURE_WIRE_SERVER) return false;
  return parsed.kind() === "ipv4" || parsed.match(GLOBAL_IPV6);
}

export function isAllowedAddress(address: string, allow: readonly Network[]): boolean {
  if (isPublicAddress(address)) return true;
  const parsed = parse(address);
  return parsed !== null && allow.some((network) => network[0].kind() === parsed.kind() && parsed.match(network));
}

/** "10.1.0.0/16", or one address. */
export function parseNetwork(where: string, text: unknown): Network {
  try {
    if (typeof text !== "string") throw new TypeError("not a text");
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    const address = parse(text);
    if (address) return [address, address.kind() === "ipv4" ? 32 : 128];
    throw new TypeError("not an address");
  } catch (error) {
    throw new OptionInvalid(
      `${where} has ${JSON.stringify(text) ?? "undefined"}, which is neither an address nor a network.`,
      'Write "10.1.2.3", "10.1.0.0/16" or "fd00::/8".',
      { cause: error },
    );
  }
}

/** An IPv4 address inside an IPv6 one is what it is inside. */
function parse(address: string): Address | null {
  const [plain = ""] = address.split("%");
  // The library also reads 0177.1; a look-up never gives that, and what is not plain is not looked at.
  if (isIP(plain) === 0) return null;
  return ipaddr.process(plain);
}
