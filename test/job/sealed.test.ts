// The recipe for secrets in payloads of docs/operating.md, word for word: nothing of them is in the tables, and keys still
// tell a repeat from a conflict.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runDue } from "#src/testing/index.js";
import { makeKind } from "../support/make.ts";
import { useHoldfast } from "../support/open-test.ts";

/** AES-256-GCM. The nonce is made from the text, so that sealing the same twice gives the same: keys still tell a repeat. */
function seal(key: Buffer, value: unknown): string {
  const text = Buffer.from(JSON.stringify(value));
  const nonce = createHmac("sha256", key).update("nonce:").update(text).digest().subarray(0, 12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64");
}

function unseal(key: Buffer, sealed: string): unknown {
  const bytes = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12));
  decipher.setAuthTag(bytes.subarray(12, 28));
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString());
}

const bench = useHoldfast("embedded");

test("the page has the same words", () => {
  const page = readFileSync(new URL("../../docs/operating.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, block]) => block!);
  const recipe = blocks.find((text) => text.includes("function seal("));
  expect(recipe).toBeDefined();
  // But for the import, which stands alone there.
  expect(readFileSync(new URL(import.meta.url), "utf8")).toContain(recipe!.slice(recipe!.indexOf("/**")));
});

test("a sealed field is in no table, is the same for the same value, and cannot be forged", async () => {
  const key = randomBytes(32);
  const seen: unknown[] = [];
  const kind = makeKind<{ to: string; secret: string }>({
    run(job) {
      seen.push(unseal(key, job.payload.secret));
    },
  });
  const secret = { password: "hunter2" };
  const enqueue = (value: unknown) => bench.hf.enqueue(kind, { to: "ada", secret: seal(key, value) }, { key: "k" });
  const { id } = await enqueue(secret);
  expect(await enqueue(secret)).toMatchObject({ id, created: false, conflict: false });
  expect(await enqueue({ password: "hunter3" })).toMatchObject({ id, created: false, conflict: true });
  await runDue(bench.hf, [kind]);
  expect(seen).toEqual([secret]);
  const { rows } = await bench.db.query("select h::text as row from holdfast.job_history h");
  expect(JSON.stringify(rows)).toContain("ada");
  expect(JSON.stringify(rows)).not.toContain("hunter2");
  const forged = Buffer.from(seal(key, secret), "base64");
  forged[30]! ^= 1;
  expect(() => unseal(key, forged.toString("base64"))).toThrow();
});
