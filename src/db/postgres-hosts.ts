// Several servers in one URL, postgres://user@a:5432,b:5432/database: a primary and its standbys. Connections go to the one
// that takes writes. Nothing is ever read from a standby: it may not know yet what the primary has promised.
//
// All connections of a Db share the place where the primary was last found. Whoever finds that it is not there any more
// (no answer, refused, or it has become a standby) moves on to the next.

export interface Hosts {
  readonly count: number;
  /** The one to connect to, from 0. */
  readonly at: number;
  /** That one is not the primary, or cannot be reached. */
  leave(at: number): void;
}

export function makeHosts(count: number): Hosts {
  let now = 0;
  return {
    count,
    get at() {
      return now;
    },
    leave(at) {
      // Somebody else may have moved on already.
      if (at === now) now = (now + 1) % count;
    },
  };
}

/** One URL for each host of it. */
export function splitHosts(url: string): string[] {
  const parts = /^([a-z]+:\/\/(?:[^/?#@]*@)?)([^/?#@]*,[^/?#@]*)(.*)$/is.exec(url);
  if (!parts) return [url];
  const [, before = "", hosts = "", after = ""] = parts;
  return hosts.split(",").map((host) => `${before}${host}${after}`);
}
