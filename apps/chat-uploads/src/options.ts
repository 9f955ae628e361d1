// The app's options, checked once.
import { type Duration, durationMs, OptionInvalid } from "holdfast";
import { type GuardedFetchOptions, makeGuardedFetch, type GuardedFetch } from "holdfast/guarded-fetch";
import type { Announcement } from "./announcements.ts";

export interface ChatUploadsOptions {
  /** A workspace that was silent for so long while a file waits is called offline. Default "5m". */
  offlineAfter?: Duration;
  /** How long messages, notices and what is known about files are kept. Default "30d". */
  keep?: Duration;
  /** For callbacks: networks that may be called although they are not public, ports, times. */
  callbacks?: GuardedFetchOptions;
  /** Told after the commit, and never before: a file is there, somebody wrote. For a broadcast of your own. */
  onAnnounced?: (announcement: Announcement) => void;
}

export interface Settings {
  offlineAfterMs: number;
  keepMs: number;
  post: GuardedFetch;
  onAnnounced: (announcement: Announcement) => void;
}

const KNOWN = ["offlineAfter", "keep", "callbacks", "onAnnounced"];
/** A file may take a while; a redirect would send it to somebody who was not named. */
const CALLBACKS: GuardedFetchOptions = {
  timeout: "10m",
  headersTimeout: "60s",
  maxRedirects: 0,
  maxBodyBytes: 65_536,
  userAgent: "holdfast-chat-uploads",
};

export function readOptions(options: ChatUploadsOptions): Settings {
  const unknown = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) {
    throw new OptionInvalid(`chatUploads() has the unknown option "${unknown}".`, `Known: ${KNOWN.join(", ")}.`);
  }
  const { offlineAfter = "5m", keep = "30d", callbacks = {}, onAnnounced = () => {} } = options;
  return {
    offlineAfterMs: durationMs("chatUploads().offlineAfter", offlineAfter),
    keepMs: durationMs("chatUploads().keep", keep),
    post: makeGuardedFetch({ ...CALLBACKS, ...callbacks }),
    onAnnounced,
  };
}
