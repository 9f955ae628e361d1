// What can be said about a URL before anybody is connected to: its scheme, its port, its host if that is an address. The
// URL class has turned 2130706433, 0177.1 and 0x7f.1 into plain addresses by then.
import { isIP } from "node:net";
import { FetchRefused } from "../errors.ts";
import { isAllowedAddress } from "./address.ts";
import type { Limits } from "./options.ts";

/** They lead to metadata services, also where a proxy or a hosts file would hide that. */
const METADATA_NAMES = new Set(["metadata", "metadata.google.internal", "metadata.goog", "instance-data"]);
const DEFAULT_PORTS: Record<string, number> = { "http:": 80, "https:": 443 };

export function checkUrl(given: string | URL, { ports, allow }: Limits, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(given, base);
  } catch (error) {
    const shown = JSON.stringify(String(given).slice(0, 200));
    throw new FetchRefused("url", `${shown} is not a URL.`, "Give a whole one: https://example.com/page.", {
      cause: error,
    });
  }
  const standardPort = DEFAULT_PORTS[url.protocol];
  if (standardPort === undefined) {
    throw new FetchRefused("url", `${url.protocol} is not fetched.`, "Give an http or https URL.");
  }
  if (url.username !== "" || url.password !== "") {
    throw new FetchRefused("url", `The URL of ${url.host} has a user or a password in it.`, "Take them out.");
  }
  const port = url.port === "" ? standardPort : Number(url.port);
  if (ports !== "any" && !ports.has(port)) {
    throw new FetchRefused("url", `Port ${port} of ${url.hostname} is not fetched from.`, "Use a standard port.");
  }
  const host = hostOf(url);
  if (METADATA_NAMES.has(host.replace(/\.$/, "")) || (isIP(host) !== 0 && !isAllowedAddress(host, allow))) {
    throw refusedAddress(host);
  }
  return url;
}

export function refusedAddress(host: string, address = host): FetchRefused {
  return new FetchRefused(
    "address",
    host === address ? `${host} is not a public address.` : `${host} is at ${address}, which is not a public address.`,
    "Only public addresses are called. The operator can allow others by name: `allow`.",
  );
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "").toLowerCase();
}
