// What people paste and what exports hold: split, brought to one form, counted.
import { describe, expect, test } from "vitest";
import { canonicalise } from "../src/links/canonical.ts";
import { readCsv } from "../src/links/csv.ts";
import { readLinks } from "../src/links/formats.ts";
import { sortLinks } from "../src/links/sort-links.ts";
import { splitText } from "../src/links/split.ts";

describe("one address for one page", () => {
  test.each([
    ["HTTPS://Example.COM/Path", "https://example.com/Path"],
    ["https://example.com", "https://example.com/"],
    ["https://example.com:443/a", "https://example.com/a"],
    ["http://example.com:80/a", "http://example.com/a"],
    ["http://example.com:8080/a", "http://example.com:8080/a"],
    ["https://example.com/a#part", "https://example.com/a"],
    ["https://example.com./a", "https://example.com/a"],
    ["https://example.com/a?utm_source=x&id=7&fbclid=y", "https://example.com/a?id=7"],
    ["https://example.com/a?utm_source=x", "https://example.com/a"],
    ["https://example.com/a?b=1&a=2", "https://example.com/a?b=1&a=2"],
    ["https://example.com/a?q=%C3%BC+x", "https://example.com/a?q=%C3%BC+x"],
    ["https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"],
    ["https://example.com/a/../b", "https://example.com/b"],
    ["  https://example.com/a  ", "https://example.com/a"],
  ])("%s", (given, url) => {
    expect(canonicalise(given)).toEqual({ url });
  });

  test.each([
    ["nonsense", "not-a-link"],
    ["example.com/a", "not-a-link"],
    ["https://", "not-a-link"],
    ["ftp://example.com/a", "not-http"],
    ["javascript:alert(1)", "not-http"],
    ["mailto:ada@example.com", "not-http"],
    ["https://user:secret@example.com/", "credentials"],
    ["https://a.example,nonsense", "no-host"],
    [`https://example.com/${"a".repeat(2_100)}`, "too-long"],
  ])("%s is none", (given, fault) => {
    expect(canonicalise(given)).toEqual({ fault });
  });
});

describe("pasted text", () => {
  test.each([
    ["https://a.example\nhttps://b.example", ["https://a.example", "https://b.example"]],
    ["https://a.example,https://b.example", ["https://a.example", "https://b.example"]],
    ["https://a.example, https://b.example;", ["https://a.example", "https://b.example"]],
    ["https://a.example/artikel,123,99.html", ["https://a.example/artikel,123,99.html"]],
    ["foo,bar", ["foo", "bar"]],
    ["(see https://a.example/x_(y)).", ["see", "https://a.example/x_(y)"]],
    ["[A title](https://a.example/1)", ["A", "title", "https://a.example/1"]],
    ["<https://a.example/1>", ["https://a.example/1"]],
    ['• https://a.example/1 – "https://a.example/2"', ["https://a.example/1", "https://a.example/2"]],
    ["\u200Bhttps://a.example/1\u00A0https://a.example/2", ["https://a.example/1", "https://a.example/2"]],
    ["", []],
    [" ,;\n- ", []],
  ])("%j", (text, tokens) => {
    expect(splitText(text)).toEqual(tokens);
  });

  test("valid, invalid and duplicates are counted, each in the order of its first appearance", () => {
    const { entries, format } = readLinks(
      "https://b.example/ nonsense https://a.example/ HTTPS://B.example nonsense ftp://x.example",
    );
    expect(format).toBe("text");
    expect(sortLinks(entries)).toEqual({
      valid: [{ url: "https://b.example/" }, { url: "https://a.example/" }],
      invalid: [
        { text: "nonsense", fault: "not-a-link" },
        { text: "ftp://x.example", fault: "not-http" },
      ],
      duplicates: ["HTTPS://B.example"],
    });
  });

  test.each([
    "a ",
    "a,",
    ",",
    "((",
    ")))",
    `${")".repeat(4_000)} `,
    "https://a.example/x ",
    "https://a.example/,",
    '"',
    '<a href="https://a.example">',
    "[[",
  ])("ten megabytes of %j hold nobody up, and what is too much is said", (piece) => {
    const text = piece.repeat(Math.floor(10_000_000 / piece.length));
    const began = performance.now();
    const { entries, isCut } = readLinks(text);
    sortLinks(entries);
    // Half a second on an idle machine.
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(isCut).toBe(piece.includes("a"));
  });
});

describe("files", () => {
  test("CSV: quotes, line breaks in them, semicolons, a byte order mark, an end without a line break", () => {
    expect(readCsv('\uFEFFa,"b ""c""\nd",e\r\n1,2,3')).toEqual([
      ["a", 'b "c"\nd', "e"],
      ["1", "2", "3"],
    ]);
    expect(readCsv("url;title\nhttps://a.example;x,y\n")).toEqual([
      ["url", "title"],
      ["https://a.example", "x,y"],
    ]);
    expect(readCsv('a,"never ends')).toEqual([["a", "never ends"]]);
    expect(readCsv("")).toEqual([]);
  });

  const good = (text: string) => {
    const { format, entries } = readLinks(text);
    return { format, valid: sortLinks(entries).valid };
  };
  const two = [
    { url: "https://a.example/1", title: "One, two" },
    { url: "https://b.example/2", title: "Three & four" },
  ];

  test("CSV with any columns, if one of them is called url", () => {
    expect(good('Title,Link\n"One, two",https://a.example/1\nThree & four,https://b.example/2\n,\n')).toEqual({
      format: "csv",
      valid: two,
    });
  });

  test("Pocket, as CSV and as HTML", () => {
    const csv =
      'title,url,time_added,tags,status\n"One, two",https://a.example/1,1700000000,,unread\nThree & four,https://b.example/2,1700000001,x|y,archive\n';
    expect(good(csv)).toEqual({ format: "pocket", valid: two });
    const html = `<!DOCTYPE html><html><head><title>Pocket Export</title></head><body><h1>Unread</h1><ul>
      <li><a href="https://a.example/1" time_added="1700000000" tags="">One, two</a></li></ul><h1>Read Archive</h1><ul>
      <li><a href="https://b.example/2" time_added="1700000001" tags="x">Three &amp; four</a></li></ul></body></html>`;
    expect(good(html)).toEqual({ format: "pocket", valid: two });
  });

  test("Instapaper", () => {
    const csv =
      'URL,Title,Selection,Folder,Timestamp,Tags\nhttps://a.example/1,"One, two",,Unread,1700000000,[]\nhttps://b.example/2,Three & four,"a ""b""",Archive,1700000001,[]\n';
    expect(good(csv)).toEqual({ format: "instapaper", valid: two });
  });

  test("bookmarks: of every browser as HTML, of Firefox and Chromium as JSON; folders, scripts and searches are no pages", () => {
    const html = `<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8"><TITLE>Bookmarks</TITLE><H1>Bookmarks</H1><DL><p>
<DT><H3 ADD_DATE="1">Folder</H3><DL><p><DT><A HREF="https://a.example/1" ADD_DATE="1" ICON="data:image/png;base64,AAAA">One, two</A>
<DT><A HREF="javascript:alert(1)">Bookmarklet</A><DT><A HREF="place:sort=8">Recent</A></DL><p>
<DT><A HREF="https://b.example/2">Three &amp; four</A></DL><p>`;
    expect(good(html)).toEqual({ format: "bookmarks", valid: two });
    const firefox = {
      type: "text/x-moz-place-container",
      children: [
        {
          title: "Menu",
          children: [
            { title: "One, two", uri: "https://a.example/1" },
            { title: "Recent", uri: "place:x" },
          ],
        },
        { title: "Three & four", uri: "https://b.example/2" },
      ],
    };
    expect(good(JSON.stringify(firefox))).toEqual({ format: "bookmarks", valid: two });
    const chromium = {
      roots: {
        bookmark_bar: { children: [{ name: "One, two", type: "url", url: "https://a.example/1" }] },
        other: { children: [{ name: "Three & four", type: "url", url: "https://b.example/2" }] },
      },
    };
    expect(good(JSON.stringify(chromium))).toEqual({ format: "bookmarks", valid: two });
  });

  test("a text that only looks like a table, or like JSON, is text", () => {
    expect(good("first, second\nhttps://a.example/1").format).toBe("text");
    expect(good("{ not json https://a.example/1").valid).toEqual([{ url: "https://a.example/1" }]);
  });
});
