// What browsers must not be used for. Two guards, in this order, before anything else of the request is looked at:
// 1. the Host must be one this server answers for: a web page that points its own name at this address (DNS
//    rebinding) is stopped here, on every route;
// 2. a request that changes something must not come from a page of another origin.
// Who is asking comes after that, in callers.ts.
import { isIP } from "node:net";
import { OptionInvalid } from "../errors.ts";
import { Refusal } from "./errors.ts";

const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"] as const;

/** 127.0.0.0/8, ::1 and localhost: what only this machine can reach. */
export function isLoopback(host: string): boolean {
  const name = bare(host);
  if (name === "localhost" || name === "::1" || name === "::ffff:127.0.0.1") return true;
  return isIP(name) === 4 && name.startsWith("127.");
}

export interface HostOptions {
  /** Names besides the loopback ones. */
  allowedHosts?: readonly string[] | undefined;
  /** Also any address written in digits: no DNS name can be pointed at those. */
  allowAddresses?: boolean | undefined;
}

export interface Guards {
  checkHost(request: Request): void;
  checkOrigin(request: Request): void;
}

export function makeGuards({ allowedHosts = [], allowAddresses = false }: HostOptions): Guards {
  const names = new Set([...LOOPBACK_HOSTS, ...allowedHosts].map(toHostName));
  const isAllowed = (host: string): boolean => {
    const name = hostNameOf(host);
    return name !== null && (names.has(name) || (allowAddresses && isIP(bare(name)) !== 0));
  };

  return {
    checkHost(request) {
      const hosts = [new URL(request.url).host, request.headers.get("host")];
      const refused = hosts.find((host) => host !== null && !isAllowed(host));
      if (refused === undefined) return;
      throw new Refusal(
        "HOLDFAST_HTTP_HOST_REFUSED",
        `This server does not answer for the host ${JSON.stringify(refused?.slice(0, 200))}.`,
        "Use the address that it printed at start, or allow the name with HOLDFAST_ALLOWED_HOSTS.",
      );
    },
    checkOrigin(request) {
      if (request.method === "GET" || request.method === "HEAD") return;
      const site = request.headers.get("sec-fetch-site");
      const origin = request.headers.get("origin");
      const isForeign = site === null ? origin !== null && !isSameHost(origin, request) : !OWN_SITES.includes(site);
      if (!isForeign) return;
      throw new Refusal(
        "HOLDFAST_HTTP_ORIGIN_REFUSED",
        "A page of another origin may not change anything here.",
        "Call the API from a program, or from a page of this server.",
      );
    },
  };
}

const OWN_SITES = ["same-origin", "none"];

function isSameHost(origin: string, request: Request): boolean {
  const host = request.headers.get("host") ?? new URL(request.url).host;
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}

function toHostName(name: string): string {
  const found = typeof name === "string" ? hostNameOf(isIP(name) === 6 ? `[${name}]` : name) : null;
  if (found !== null) return found;
  throw new OptionInvalid(
    `The allowed host ${JSON.stringify(name)} is not a host name.`,
    'Write it without scheme and path: "jobs.example.com".',
  );
}

/** The name in a Host header, without the port, as a URL would spell it; null if it is none. */
function hostNameOf(host: string): string | null {
  if (!/^[\w.:[\]-]+$/.test(host) || !URL.canParse(`http://${host}`)) return null;
  return new URL(`http://${host}`).hostname.replace(/\.$/, "");
}

/** Without the brackets of an IPv6 address. */
function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}
