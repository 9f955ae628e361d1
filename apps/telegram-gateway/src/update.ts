// An update as it came: read leniently, because Telegram adds fields, and made storable, because a text with a NUL must
// not be redelivered for a day.
import type { Update } from "grammy/types";

export type { Update };

/** null: this is no update, whoever sent it. */
export function parseUpdate(text: string): Update | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
    // Only an escape can bring such a character along.
    if (text.includes("\\u")) value = storable(value);
  } catch {
    // Also what is nested so deeply that it cannot be walked.
    return null;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value) || !("update_id" in value)) return null;
  return Number.isSafeInteger(value.update_id) && (value.update_id as number) >= 0 ? (value as Update) : null;
}

/** NUL and halves of surrogate pairs cannot be kept by PostgreSQL: each becomes the sign for "unreadable". */
function storable(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("\0", "\ufffd").toWellFormed();
  if (Array.isArray(value)) return value.map(storable);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [storable(name), storable(entry)]));
}

interface Person {
  id: number;
  first_name?: string;
  username?: string;
}

interface Said {
  chat?: { id: number; title?: string };
  from?: Person;
  text?: string;
  caption?: string;
  message?: Said;
  data?: string;
  query?: string;
}

/** The one part of an update that is not its number: the message, the callback, the poll. */
function contentOf(update: Update): Said {
  for (const [name, value] of Object.entries(update)) {
    if (name !== "update_id" && value !== null && typeof value === "object") return value as Said;
  }
  return {};
}

/** Which sort of update: "message", "callback_query". */
export function sortOf(update: Update): string {
  return Object.keys(update).find((name) => name !== "update_id") ?? "nothing";
}

export function chatOf(update: Update): number | null {
  const content = contentOf(update);
  const id = content.chat?.id ?? content.message?.chat?.id;
  return Number.isSafeInteger(id) ? (id as number) : null;
}

export function userOf(update: Update): { id: number; name: string } | null {
  const { from } = contentOf(update);
  if (!from || !Number.isSafeInteger(from.id)) return null;
  return { id: from.id, name: String(from.first_name ?? from.username ?? from.id).slice(0, 100) };
}

export function textOf(update: Update): string {
  const { text, caption, data, query } = contentOf(update);
  return [text, caption, data, query].find((given) => typeof given === "string") ?? "";
}

/** What people see of it, where it has no text. */
export function summaryOf(update: Update): string {
  return textOf(update) || `(${sortOf(update).replaceAll("_", " ")})`;
}
