// Which addresses a bot may be forwarded to. The operator chose the URL, so private networks are what it is for; the
// metadata services of clouds, which hand out credentials to whoever asks, never are, under whichever name.
import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { OptionInvalid } from "holdfast";

const metadata = new BlockList();
metadata.addSubnet("169.254.0.0", 16, "ipv4");
metadata.addSubnet("fe80::", 10, "ipv6");
metadata.addAddress("fd00:ec2::254", "ipv6");
metadata.addAddress("100.100.100.200", "ipv4");

export function isMetadata(address: string): boolean {
  const family = isIP(address);
  // An IPv4 address inside an IPv6 one is checked as what it is.
  return family !== 0 && metadata.check(address, family === 6 ? "ipv6" : "ipv4");
}

/** The URL has turned 2130706433 and 0x7f.1 into plain addresses already. */
export function refuseMetadata(where: string, url: URL): void {
  if (!isMetadata(url.hostname.replace(/^\[|\]$/g, ""))) return;
  throw new OptionInvalid(`${where} is the address of a metadata service.`, "Give the address of your own service.");
}

/** For connections: a name that leads there is refused when it is looked up. */
export const safeLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, "", 0);
    const refused = addresses.find(({ address }) => isMetadata(address));
    if (refused) return callback(new Error(`${hostname} is a metadata service`), "", 0);
    if (options.all) return callback(null, addresses);
    callback(null, addresses[0]!.address, addresses[0]!.family);
  });
};
