// What an embedder answers is checked, whoever it is.
import { afterAll, describe, expect, test } from "vitest";
import { embedTexts } from "../src/embedders/embedder.ts";
import { embedderFrom, makeEmbedder } from "../src/embedders/options.ts";
import { similarity } from "../src/vectors.ts";
import { startEmbedder } from "../storm/embedder.mjs";

const signal = new AbortController().signal;

describe("the lexical embedder", () => {
  const embedder = makeEmbedder({ provider: "lexical" })!;
  const of = async (...texts: string[]) => (await embedTexts(embedder, texts, signal)).vectors;

  test("texts with the same words, and words that are spelled alike, are nearer; it is the same every time", async () => {
    const [wanted, near, far] = await of(
      "deleting repositories",
      "DELETE /repos\nDelete a repository",
      "GET /emojis\nGet emojis",
    );
    expect(similarity(wanted!, near!)).toBeGreaterThan(similarity(wanted!, far!) + 0.1);
    expect((await of("deleting repositories"))[0]).toEqual(wanted);
    expect(similarity(wanted!, wanted!)).toBeCloseTo(1, 5);
  });

  test("what has no words has no vector, instead of a zero one", async () => {
    await expect(of("GET /pets", "?!")).rejects.toThrow(
      "lexical:1 answered with something that is no vector, or a zero one for texts 2 to 2.",
    );
  });
});

describe.each(["ollama", "openai"] as const)("%s", async (provider) => {
  const server = await startEmbedder();
  afterAll(() => server.close());
  const embedder = makeEmbedder({
    provider,
    url: server.url,
    model: "tiny",
    ...(provider === "openai" && { apiKey: "k" }),
  })!;
  const ask = (count = 3) =>
    embedTexts(
      embedder,
      Array.from({ length: count }, (_, n) => `text ${n}`),
      signal,
      64,
    );

  test("vectors come in the order of the texts, with a label that has the dimension", async () => {
    const { label, vectors } = await ask();
    expect(label).toBe(`${provider}:tiny:128`);
    const [alone] = (await embedTexts(embedder, ["text 2"], signal)).vectors;
    expect(vectors[2]).toEqual(alone);
    expect(server.calls.at(-1)).toMatchObject({ model: "tiny", ...(provider === "openai" && { key: "Bearer k" }) });
  });

  test("more texts than it takes are several calls", async () => {
    const before = server.calls.length;
    const { vectors } = await embedTexts({ ...embedder, mostTexts: 2 }, ["a", "b", "c", "d", "e"], signal);
    expect([vectors.length, server.calls.length - before]).toEqual([5, 3]);
  });

  test.each([
    ["short", `${provider}:tiny answered with 2 vectors for texts 65 to 67.`],
    ["zero", `${provider}:tiny answered with something that is no vector, or a zero one for texts 65 to 65.`],
    ["fail", `${provider}:tiny answered 500: out of memory`],
    ["garbage", `${provider}:tiny answered with something that is not JSON`],
    ["drop", `${provider}:tiny cannot be reached at http://127.0.0.1`],
  ])("%s is an error that says so", async (how, message) => {
    server.state.behave = () => how;
    await expect(ask()).rejects.toThrow(message);
    server.state.behave = () => "ok";
  });

  test("429 says when to come again; a call that hangs ends with its signal", async () => {
    server.state.behave = () => "busy";
    await expect(ask()).rejects.toMatchObject({ name: "RetryAfter", delayMs: 1_000 });
    server.state.behave = () => "hang";
    await expect(embedTexts(embedder, ["x"], AbortSignal.timeout(100))).rejects.toMatchObject({ name: "TimeoutError" });
    server.state.behave = () => "ok";
  });
});

test("which embedder: from the environment; a wrong one is named", () => {
  expect(makeEmbedder(embedderFrom({}))!.name).toBe("lexical:1");
  expect(makeEmbedder(embedderFrom({ API_CATALOG_EMBEDDER: "ollama", API_CATALOG_EMBEDDER_MODEL: "m" }))!.name).toBe(
    "ollama:m",
  );
  expect(makeEmbedder(embedderFrom({ API_CATALOG_EMBEDDER: "off" }))).toBeUndefined();
  expect(() => makeEmbedder(embedderFrom({ API_CATALOG_EMBEDDER: "magic" }))).toThrow('provider is "magic"');
  expect(() => makeEmbedder(embedderFrom({ API_CATALOG_EMBEDDER: "openai", API_CATALOG_EMBEDDER_MODEL: "m" }))).toThrow(
    'url is ""',
  );
  expect(() => makeEmbedder(embedderFrom({ API_CATALOG_EMBEDDER: "ollama" }))).toThrow('model is ""');
});

test("a password in the address is refused at start, and said nowhere", () => {
  const url = "http://me:hidden@127.0.0.1:11434";
  let said: unknown;
  try {
    makeEmbedder({ provider: "ollama", url, model: "m" });
  } catch (error) {
    said = error;
  }
  expect(said).toMatchObject({ message: "The embedder's url has a name or a password in it." });
  expect(JSON.stringify(said)).not.toContain("hidden");
});
