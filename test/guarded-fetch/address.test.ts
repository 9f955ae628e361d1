// Which URLs and addresses are never connected to, in every form that somebody might try; and neighbours that are fine.
import { describe, expect, test } from "vitest";
import { isPublicAddress, makeGuardedFetch } from "#src/guarded-fetch/index.js";
import { checkUrl } from "#src/guarded-fetch/check-url.js";
import { readOptions } from "#src/guarded-fetch/options.js";

const INSIDE = [
  ["loopback", "127.0.0.1"],
  ["loopback, its last", "127.255.255.254"],
  ["this host", "0.0.0.0"],
  ["this network", "0.1.2.3"],
  ["private 10", "10.0.0.1"],
  ["private 172, first", "172.16.0.0"],
  ["private 172, last", "172.31.255.255"],
  ["private 192", "192.168.1.1"],
  ["carrier NAT", "100.64.0.1"],
  ["Alibaba's metadata", "100.100.100.200"],
  ["link-local", "169.254.0.1"],
  ["metadata", "169.254.169.254"],
  ["ECS metadata", "169.254.170.2"],
  ["Azure's wire server", "168.63.129.16"],
  ["Oracle's metadata", "192.0.0.192"],
  ["test network 1", "192.0.2.1"],
  ["test network 2", "198.51.100.1"],
  ["test network 3", "203.0.113.1"],
  ["benchmarks", "198.18.0.1"],
  ["6to4 relay", "192.88.99.1"],
  ["multicast", "224.0.0.1"],
  ["reserved", "240.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["IPv6 loopback", "::1"],
  ["IPv6 unspecified", "::"],
  ["mapped, dotted", "::ffff:127.0.0.1"],
  ["mapped, hexadecimal", "::ffff:a9fe:a9fe"],
  ["mapped, written out", "0:0:0:0:0:ffff:7f00:1"],
  ["compatible", "::7f00:1"],
  ["compatible, dotted", "::10.0.0.1"],
  ["translated", "::ffff:0:7f00:1"],
  ["NAT64", "64:ff9b::7f00:1"],
  ["NAT64 with a public one", "64:ff9b::808:808"],
  ["NAT64, local", "64:ff9b:1::a00:1"],
  ["6to4 of 127.0.0.1", "2002:7f00:1::"],
  ["Teredo", "2001:0:7f00:1::"],
  ["unique local", "fd12:3456::1"],
  ["EC2 metadata", "fd00:ec2::254"],
  ["IPv6 link-local", "fe80::1"],
  ["IPv6 link-local with a zone", "fe80::1%eth0"],
  ["site-local", "fec0::1"],
  ["IPv6 multicast", "ff02::1"],
  ["documentation", "2001:db8::1"],
  ["discard", "100::1"],
  ["segment routing", "5f00::1"],
  ["unassigned", "4000::1"],
] as const;

const PUBLIC = [
  "1.1.1.1",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "172.15.255.255",
  "172.32.0.0",
  "169.253.255.255",
  "168.63.129.17",
  "192.167.255.255",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "2606:4700::1111",
  "2a00:1450:4001::1",
] as const;

test.each(INSIDE)("%s is not public: %s", (_, address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(PUBLIC)("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each(["", "localhost", "1.2.3", "0177.0.0.1", "0x8080808", "134744072", "1.1.1.1/8", "[2606:4700::1111]", "%"])(
  "%j is no plain address, so not a public one",
  (text) => {
    expect(isPublicAddress(text)).toBe(false);
  },
);

describe("URLs that are refused before anybody is connected to", () => {
  const limits = readOptions({});
  const refused = (url: string, reason: string): void => {
    expect(() => checkUrl(url, limits), url).toThrow(
      expect.objectContaining({ code: "HOLDFAST_FETCH_REFUSED", reason }),
    );
  };

  test.each([
    ["decimal", "http://2130706433/"],
    ["hexadecimal", "http://0x7f000001/"],
    ["octal", "http://0177.0.0.1/"],
    ["octal, long", "http://00000000177.0.0.1/"],
    ["mixed", "http://0x7f.1/"],
    ["short", "http://127.1/"],
    ["shorter", "http://0/"],
    ["a dot at the end", "http://127.0.0.1./"],
    ["full-width digits", "http://１２７.０.０.１/"],
    ["circled digits", "http://①②⑦.⓪.⓪.①/"],
    ["an ideographic full stop", "http://127。0。0。1/"],
    ["percent-encoded", "http://%31%32%37.0.0.1/"],
    ["metadata as a number", "http://2852039166/latest/meta-data/"],
    ["IPv6", "http://[::1]/"],
    ["IPv6 that carries IPv4", "http://[::ffff:169.254.169.254]/"],
    ["IPv6 that carries IPv4, in hexadecimal", "https://[::ffff:a9fe:a9fe]/"],
    ["unspecified", "http://[::]/"],
    ["Google's metadata by its name", "http://metadata.google.internal/computeMetadata/v1/"],
    ["with a dot and in capitals", "http://METADATA.google.internal./"],
    ["a backslash", "http:\\\\127.0.0.1\\"],
    ["an address behind a fragment's look", "http://127.0.0.1#@example.com/"],
  ])("%s: %s", (_, url) => refused(url, "address"));

  test.each([
    ["a file", "file:///etc/passwd"],
    ["gopher", "gopher://example.com/"],
    ["data", "data:text/plain,hello"],
    ["ftp", "ftp://example.com/"],
    ["unix", "unix:/var/run/docker.sock"],
    ["a user", "http://user@example.com/"],
    ["a password", "http://:secret@example.com/"],
    ["a host that only looks like one", "http://example.com@127.0.0.1/"],
    ["ssh's port", "http://example.com:22/"],
    ["redis's port", "http://example.com:6379/"],
    ["no scheme", "example.com"],
    ["nothing", ""],
    ["too many numbers", "http://1.2.3.4.5/"],
    ["a number that is too large", "http://4294967296/"],
    ["an open bracket", "http://[::1/"],
  ])("%s: %s", (_, url) => refused(url, "url"));

  test("a password is not repeated in the message", () => {
    expect(() => checkUrl("http://me:hunter2@example.com/", limits)).toThrow(/^(?!.*hunter2)/);
  });

  test("public ones pass, with both default ports; the port of the other scheme too", () => {
    for (const url of [
      "http://example.com/",
      "https://1.1.1.1/a?b#c",
      "https://[2606:4700::1111]/",
      "http://x.org:443/",
    ]) {
      expect(checkUrl(url, limits).protocol).toMatch(/^https?:$/);
    }
  });

  test("what the operator allows, and nothing beside it", () => {
    const own = readOptions({ allow: ["10.1.0.0/16", "fd00::7"], ports: [8080] });
    expect(checkUrl("http://10.1.255.255:8080/", own).port).toBe("8080");
    expect(checkUrl("http://[fd00::7]:8080/", own).port).toBe("8080");
    for (const url of ["http://10.2.0.0:8080/", "http://[fd00::8]:8080/", "http://10.1.0.1/"]) {
      expect(() => checkUrl(url, own), url).toThrow(expect.objectContaining({ code: "HOLDFAST_FETCH_REFUSED" }));
    }
  });
});

test.each([
  [{ timeout: 5 }, "timeout"],
  [{ connectTimeout: "0s" }, "connectTimeout"],
  [{ maxBodyBytes: -1 }, "maxBodyBytes"],
  [{ maxRedirects: 1.5 }, "maxRedirects"],
  [{ maxRatio: 0 }, "maxRatio"],
  [{ ports: [0] }, "ports"],
  [{ ports: "all" }, "ports"],
  [{ allow: ["10.1.0.0/40"] }, "allow"],
  [{ allow: ["inside.example"] }, "allow"],
  [{ maxRedirect: 1 }, "maxRedirect"],
])("%j is refused at start", (options, name) => {
  expect(() => makeGuardedFetch(options as never)).toThrow(
    expect.objectContaining({ code: "HOLDFAST_OPTION_INVALID", message: expect.stringContaining(name) }),
  );
});
