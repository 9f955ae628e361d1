// The parser of forms: whatever the pieces the network makes of it, the same files come out.
import fc from "fast-check";
import { expect, test } from "vitest";
import { boundaryOf, readParts } from "#src/http/multipart.js";
import { caught } from "../support/make.ts";
import { collect, someBytes } from "./scene.ts";
import { seedFrom } from "../support/random.ts";

// One for the file: what is tried again is the same run. fast-check names it when something fails.
const seed = seedFrom(process.env["FUZZ_SEED"]);

async function* cut(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const size = sizes[n % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function parse(body: AsyncIterable<Uint8Array>, type: string) {
  const files: [string, string | undefined, string, Buffer][] = [];
  for await (const { field, filename, type: of, content } of readParts(body, boundaryOf(type)!)) {
    files.push([field, filename, of, await collect(content)]);
  }
  return files;
}

/** As a browser writes it. */
async function encode(files: readonly Buffer[]): Promise<{ bytes: Buffer; type: string }> {
  const form = new FormData();
  for (const [n, file] of files.entries())
    form.append(`f${n}`, new Blob([file], { type: "image/png" }), `n "${n}".png`);
  const encoded = new Response(form);
  return { bytes: Buffer.from(await encoded.arrayBuffer()), type: encoded.headers.get("content-type")! };
}

test("files come out as they went in, wherever the body is cut into pieces", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 200 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1, maxLength: 5 }),
      async (given, sizes) => {
        const files = given.map((bytes) => Buffer.from(bytes));
        const { bytes, type } = await encode(files);
        const parsed = await parse(cut(bytes, sizes), type);
        expect(parsed).toEqual(files.map((file, n) => [`f${n}`, `n "${n}".png`, "image/png", file]));
      },
    ),
    { numRuns: 200, seed },
  );
});

test("what looks like a boundary and is none is content", async () => {
  const tricky = ["\r\n--", "\r\n--b", "--bound", "\r\n--boun\r\n--bound", "\r", "\r\n", ""].map((text) =>
    Buffer.from(text),
  );
  for (const content of tricky) {
    const body = Buffer.concat([
      Buffer.from('--bound2\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n'),
      content,
      Buffer.from("\r\n--bound2--\r\n"),
    ]);
    for (const size of [1, 2, 3, 7, 1_000]) {
      expect((await parse(cut(body, [size]), "multipart/form-data; boundary=bound2"))[0]![3].equals(content)).toBe(
        true,
      );
    }
  }
});

test("a body that ends too early is an error wherever it ends", async () => {
  const { bytes, type } = await encode([someBytes(50), someBytes(20)]);
  const end = bytes.lastIndexOf("--");
  for (let at = 0; at < end + 2; at += 1) {
    expect(await caught(parse(cut(bytes.subarray(0, at), [13]), type)), String(at)).toMatchObject({
      code: "HOLDFAST_HTTP_REQUEST_UNREADABLE",
    });
  }
});

test("a part that nobody reads is passed over", async () => {
  const { bytes, type } = await encode([someBytes(5_000), Buffer.from("second")]);
  const found: string[] = [];
  for await (const { field, content } of readParts(cut(bytes, [100]), boundaryOf(type)!)) {
    if (field === "f1") found.push((await collect(content)).toString());
  }
  expect(found).toEqual(["second"]);
});
