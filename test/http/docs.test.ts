// docs/http.md lists the routes and the codes that exist, and no others.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CONTRACTS } from "#src/http/contracts.js";
import { HTTP_CODES } from "#src/http/errors.js";

const page = readFileSync(new URL("../../docs/http.md", import.meta.url), "utf8");

test("every route is documented, with the role it wants, and no other route is", () => {
  const documented = [...page.matchAll(/^\| `(GET|POST|PUT|DELETE) (\/\S+)` \| (\w+) \|/gm)].map(
    ([, method, path, access]) => `${method} ${path} ${access}`,
  );
  const real = Object.values(CONTRACTS).map(({ method, path, access }) => `${method} ${path} ${access}`);
  expect(documented.toSorted()).toEqual(real.toSorted());
});

test("every code that exists over HTTP only is documented with its status, and no other is", () => {
  const documented = [...page.matchAll(/^\| `(HOLDFAST_HTTP_\w+)` \| (\d+) \|/gm)].map(([, code, status]) => [
    code,
    Number(status),
  ]);
  expect(Object.fromEntries(documented)).toEqual(HTTP_CODES);
});
