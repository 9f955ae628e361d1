// Pages are read in a thread: what comes out, in which encoding, what is left of hostile ones, and what happens to those
// that take too much.
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { isConsentWall } from "../src/extract/consent.ts";
import { makeExtractor } from "../src/extract/extractor.ts";
import { article, consentWall, germanArticle, hostileArticle } from "../src/sample/pages.ts";

const extractor = makeExtractor({ timeoutMs: 5_000 });
afterAll(() => extractor.close());
const read = (bytes: string | Buffer, contentType = "text/html; charset=utf-8") =>
  extractor.read({ bytes: Buffer.from(bytes as string), contentType, url: "https://a.example/dir/page" });

describe("an article", () => {
  test("has its title, its words and absolute links, and not the menu around it", async () => {
    const { found, title, siteName, words, html, language, text } = await read(article(1));
    expect({ found, title, siteName, language }).toEqual({
      found: true,
      title: "How lighthouses were counted",
      siteName: "The Sample Gazette",
      language: "en",
    });
    expect(words).toBeGreaterThan(400);
    expect(html).toContain('<a href="https://a.example/articles/2">');
    expect(html).toContain("<h2>What came later</h2>");
    expect(text).not.toContain("Home");
  });

  test("of a page that would like to do more than be read is only what can be read", async () => {
    const { html, title } = await read(hostileArticle());
    expect(html).toContain("green cover");
    expect(html).not.toMatch(/script|onerror|onclick|iframe|<img|svg|style|form|input|javascript:|data:|math/i);
    // It is shown as text wherever it is shown.
    expect(title).toContain("<img");
  });

  test.each([
    ["the header", germanArticle(), "text/html; charset=iso-8859-1", "windows-1252", "Größe"],
    [
      "the page",
      Buffer.from(
        `<html><head><meta charset="windows-1251"></head><body><p>\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0</p></body></html>`,
        "latin1",
      ),
      "text/html",
      "windows-1251",
      "Привет, мир",
    ],
    [
      "the page, the old way",
      Buffer.from(
        `<html><head><meta http-equiv="Content-Type" content="text/html; charset=shift_jis"></head><body><p>\x93\xfa\x96{\x8c\xea</p></body></html>`,
        "latin1",
      ),
      "text/html",
      "shift_jis",
      "日本語",
    ],
    [
      "a byte order mark, against the header",
      Buffer.from("\uFEFF<html><body><p>Größe</p></body></html>"),
      "text/html; charset=iso-8859-1",
      "utf-8",
      "Größe",
    ],
    [
      "UTF-16",
      Buffer.from("\uFEFF<html><body><p>Größe</p></body></html>", "utf16le"),
      "text/html",
      "utf-16le",
      "Größe",
    ],
    ["nothing, and it is UTF-8", Buffer.from("<html><body><p>Größe</p></body></html>"), "text/html", "utf-8", "Größe"],
    [
      "nothing, and it is not",
      Buffer.from("<html><body><p>Gr\xf6\xdfe</p></body></html>", "latin1"),
      "text/html",
      "windows-1252",
      "Größe",
    ],
    [
      "a label that nobody knows",
      Buffer.from("<html><body><p>Größe</p></body></html>"),
      "text/html; charset=klingon",
      "utf-8",
      "Größe",
    ],
  ])("its encoding is told by %s", async (_, bytes, contentType, charset, words) => {
    const read1 = await read(bytes, contentType);
    expect(read1.charset).toBe(charset);
    expect(read1.text).toContain(words);
  });

  test("plain text is one too; nothing, half a tag and bytes that mean nothing are none, and break nothing", async () => {
    expect(await read("One.\n\nTwo <b>.", "text/plain")).toMatchObject({
      found: true,
      title: "page",
      html: "<p>One.</p><p>Two &lt;b&gt;.</p>",
    });
    for (const bytes of ["", "<", "<html", "\0\0\0", Buffer.from([0xff, 0xfe, 0xfd]), "<p>".repeat(5_000)]) {
      expect(await read(bytes)).toMatchObject({ words: expect.any(Number) });
    }
  });
});

test.each([
  ["/100%.txt", "100%"],
  ["/a%20b%ZZ.txt", "a%20b%ZZ"],
  ["/a%20b.txt", "a b"],
])("plain text at %s has a title", async (path, title) => {
  const url = `https://a.example${path}`;
  const read1 = await extractor.read({ bytes: Buffer.from("One."), contentType: "text/plain", url });
  expect(read1).toMatchObject({ found: true, title });
});

describe("caps", () => {
  test("a page that takes too long costs its thread and nothing else", async () => {
    const short = makeExtractor({ timeoutMs: 150 });
    // Deep nesting makes readers slow.
    const slow = `<html><body>${"<div><p>word word word, ".repeat(60_000)}</body></html>`;
    const page = (bytes: string) => ({
      bytes: Buffer.from(bytes),
      contentType: "text/html",
      url: "https://a.example/",
    });
    const [first, second] = await Promise.allSettled([short.read(page(slow)), short.read(page("<p>Behind it</p>"))]);
    expect(first).toMatchObject({
      status: "rejected",
      reason: { code: expect.stringMatching(/ARTICLES_TOO_SLOW|ARTICLES_TOO_LARGE|ARTICLES_UNREADABLE/) },
    });
    // The thread that starts anew takes a moment, and may run into the same short time.
    if (second.status === "rejected") expect(second.reason).toMatchObject({ code: "ARTICLES_TOO_SLOW" });
    await short.close();
  });

  test("one that needs too much memory is refused, and the process lives", async () => {
    const small = makeExtractor({ memoryMb: 32, timeoutMs: 20_000 });
    const large = `<html><body>${"<p><b>a</b><i>b</i></p>".repeat(150_000)}</body></html>`;
    await expect(
      small.read({ bytes: Buffer.from(large), contentType: "text/html", url: "https://a.example/" }),
    ).rejects.toMatchObject({
      code: expect.stringMatching(/ARTICLES_TOO_LARGE|ARTICLES_UNREADABLE/),
    });
    expect(
      (await small.read({ bytes: Buffer.from(article(2)), contentType: "text/html", url: "https://a.example/" })).found,
    ).toBe(true);
    await small.close();
  }, 30_000);

  test("who gives up is not waited for", async () => {
    const over = new AbortController();
    const reading = extractor.read(
      { bytes: Buffer.from(article(1)), contentType: "text/html", url: "https://a.example/" },
      over.signal,
    );
    over.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
    expect((await read(article(1))).found).toBe(true);
  });
});

describe("a consent wall", () => {
  const few = (text: string, words = 50) => isConsentWall({ text, words });
  test.each([
    ["English", "Please Accept All Cookies to go on", true],
    ["German", "Bitte ALLE AKZEPTIEREN oder Einstellungen", true],
    ["French", "Continuer sans accepter", true],
    ["Spanish", "Nosotros y nuestros socios", true],
    ["Italian", "Accetta e continua", true],
    ["Dutch", "Wij gebruiken cookies", true],
    ["Polish", "Używamy plików cookie", true],
    ["Portuguese", "Aceitar e continuar", true],
    ["across a line break", "accept\n   all cookies", true],
    ["a recipe", "Bake the cookies for ten minutes", false],
    ["nothing", "", false],
  ])("%s", (_, text, is) => {
    expect(few(text)).toBe(is);
  });
  test("has fewer than 300 words: 299 is one, 300 is none", () => {
    expect(few("We use cookies", 299)).toBe(true);
    expect(few("We use cookies", 300)).toBe(false);
  });
  test("is found in a real page", async () => {
    expect(isConsentWall(await read(consentWall()))).toBe(true);
    expect(isConsentWall(await read(article(4)))).toBe(false);
  });
});

test("the page's words are the same in both languages, and none is empty", async () => {
  const source = readFileSync(new URL("../page/words.js", import.meta.url), "utf8");
  const storage = "const localStorage = { getItem: () => null, setItem() {} }; const navigator = { languages: [] };\n";
  const { ALL_WORDS } = (await import(`data:text/javascript,${encodeURIComponent(storage + source)}`)) as {
    ALL_WORDS: Record<string, Record<string, unknown>>;
  };
  const keys = (of: Record<string, unknown>): string[] =>
    Object.entries(of).flatMap(([key, value]) =>
      // English needs no words for problems: they come in English.
      key === "problems"
        ? []
        : value !== null && typeof value === "object"
          ? keys(value as never).map((each) => `${key}.${each}`)
          : [key],
    );
  expect(keys(ALL_WORDS["de"]!)).toEqual(keys(ALL_WORDS["en"]!));
  const codes = readFileSync(new URL("../src/problems.ts", import.meta.url), "utf8").matchAll(/\| "([a-z-]+)"/g);
  for (const [, code] of codes)
    expect(ALL_WORDS["de"]!["problems"]).toHaveProperty(`ARTICLES_${code!.toUpperCase().replaceAll("-", "_")}`);
});
