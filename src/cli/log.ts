// What the process has to say, on stderr: lines for people on a terminal, one JSON object per line anywhere else (or
// with --log=json). Never throws, whatever the fields hold.
import { styleText } from "node:util";
import type { Logger } from "../options.ts";
import { recordError } from "../job/outcome.ts";
import { isColored } from "./colors.ts";
import { printable, printableLines } from "./printable.ts";

export type LogFormat = "human" | "json";
export type LogLevel = "debug" | "info" | "warn" | "error";

export interface Log extends Logger {
  readonly format: LogFormat;
  /** Whether anybody would see it. */
  shows(level: LogLevel): boolean;
}

export interface LogOptions {
  format: LogFormat;
  /** The least that is shown. */
  level: LogLevel;
  color: boolean;
  write: (text: string) => void;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];
const COLORS = { debug: "gray", info: "cyan", warn: "yellow", error: "red" } as const;

export function makeLog({ format, level, color, write }: LogOptions): Log {
  const shows = (asked: LogLevel): boolean => LEVELS.indexOf(asked) >= LEVELS.indexOf(level);
  const paint = (name: Parameters<typeof styleText>[0], text: string): string =>
    color ? styleText(name, text, { validateStream: false }) : text;

  function human(at: LogLevel, message: string, fields: object): string {
    const { error, hint, stack, ...rest } = fields as { error?: unknown; hint?: unknown; stack?: unknown };
    const time = new Date().toTimeString().slice(0, 8);
    const details = Object.entries(rest)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => paint("gray", `${name}=${printable(textOf(value))}`));
    const why = error === undefined ? [] : [paint(COLORS[at], printable(summary(error)))];
    const head = `${paint("gray", time)} ${paint(COLORS[at], at.padEnd(5))} ${printable(message)}`;
    const next = typeof hint === "string" ? `\n               ${printable(hint)}` : "";
    const where = typeof stack === "string" ? `\n${printableLines(stack)}` : "";
    return `${[head, ...why, ...details].join("  ")}${next}${where}\n`;
  }

  const say =
    (at: LogLevel) =>
    (message: string, fields: object = {}): void => {
      if (!shows(at)) return;
      write(format === "json" ? toJsonLine(at, message, fields) : human(at, message, fields));
    };
  return { format, shows, debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") };
}

function toJsonLine(level: LogLevel, message: string, fields: object): string {
  const line: Record<string, unknown> = { time: new Date().toISOString(), level, message };
  for (const [name, value] of Object.entries(fields)) {
    line[name in line ? `${name}_` : name] = value instanceof Error ? recordError(value) : value;
  }
  try {
    return `${JSON.stringify(line)}\n`;
  } catch {
    return `${JSON.stringify({ time: line["time"], level, message, fields: "(cannot be written as JSON)" })}\n`;
  }
}

/** For the terminal this process has. */
export function openLog(options: { format?: LogFormat | undefined; level: LogLevel }): Log {
  const { stderr } = process;
  return makeLog({
    format: options.format ?? (stderr.isTTY ? "human" : "json"),
    level: options.level,
    color: isColored(stderr),
    write: (text) => void stderr.write(text),
  });
}

function summary(error: unknown): string {
  const { name, message, cause } = recordError(error);
  const because = cause ? ` (${cause.message})` : "";
  return name === "Error" ? `${message}${because}` : `${name}: ${message}${because}`;
}

function textOf(value: unknown): string {
  if (typeof value === "string") return /^[\w.:/@-]+$/.test(value) ? value : JSON.stringify(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "(unreadable)";
  }
}
