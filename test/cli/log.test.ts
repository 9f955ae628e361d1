// What the process says: on a terminal, as JSON, about trouble that goes on, and with text that is not to be trusted.
import { describe, expect, test } from "vitest";
import { calmTrouble } from "#src/cli/calm-trouble.js";
import { type LogLevel, makeLog } from "#src/cli/log.js";
import { printable } from "#src/cli/printable.js";

function heard(format: "human" | "json", level: LogLevel = "info", color = false) {
  const lines: string[] = [];
  return { log: makeLog({ format, level, color, write: (text) => lines.push(text) }), lines };
}

describe("lines", () => {
  test("for people: time, level, sentence, error, fields, and what to do on the next line", () => {
    const { log, lines } = heard("human");
    log.warn("mail.send failed", { error: new TypeError("no"), jobId: "x-1", note: "two words", hint: "Look." });
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d warn {2}mail\.send failed {2}TypeError: no {2}jobId=x-1 {2}note="two words"\n +Look\.\n$/,
    );
  });

  test("for programs: one JSON object, whatever the fields hold", () => {
    const { log, lines } = heard("json");
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    log.info("hello", { jobId: "x", level: "mine", error: new Error("why") });
    log.error("odd", { circular });
    log.error("odd", { big: 1n });
    expect(JSON.parse(lines[0]!)).toMatchObject({
      level: "info",
      message: "hello",
      jobId: "x",
      error: { message: "why" },
    });
    for (const line of lines.slice(1)) expect(JSON.parse(line)).toMatchObject({ level: "error", message: "odd" });
    expect(lines.every((line) => line.indexOf("\n") === line.length - 1)).toBe(true);
  });

  test("only what was asked for, in colour only if asked for", () => {
    const { log, lines } = heard("human", "warn");
    log.info("no");
    log.debug("no");
    log.error("yes");
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("\u001b[");
    const coloured = heard("human", "info", true);
    coloured.log.info("yes");
    expect(coloured.lines[0]).toContain("\u001b[");
  });

  test("text of jobs cannot play tricks on a terminal", () => {
    const { log, lines } = heard("human");
    log.error("failed", { error: new Error("\u001b[2J\u001b]0;title\u0007fake\n12:00:00 info  all is well\u202e") });
    for (const trick of ["\u001b", "\u0007", "\u202e"]) expect(lines[0]).not.toContain(trick);
    expect(lines[0]!.trimEnd()).not.toContain("\n");
    expect(printable("a\tb\r\u0000c")).toBe("a b\uFFFD\uFFFDc");
  });
});

describe("trouble that goes on", () => {
  test("is told at once, then every ten seconds with how often it came; other trouble at once", () => {
    const { log, lines } = heard("json");
    let now = 0;
    const calm = calmTrouble(log, () => now);
    const away = { error: new Error("connect ECONNREFUSED") };
    for (; now < 10_000; now += 500) calm.warn("Trouble in claim loop", away);
    expect(lines).toHaveLength(1);
    calm.warn("Trouble in settle", away);
    expect(lines).toHaveLength(2);
    now = 10_500;
    calm.warn("Trouble in claim loop", away);
    expect(JSON.parse(lines[2]!)).toMatchObject({ message: "Trouble in claim loop", times: 20 });
    expect(lines[2]).not.toContain("stack");
  });

  test("what handlers say passes unchanged, however often", () => {
    const { log, lines } = heard("json");
    const calm = calmTrouble(log, () => 0);
    for (let n = 0; n < 3; n += 1) calm.warn("slow answer", { error: new Error("x") });
    expect(lines).toHaveLength(3);
  });
});
