// Why a page did not become an article, in words and as a code that pages in other languages can translate. A problem says
// whether trying again can help.
import { Fatal, RetryAfter } from "holdfast";

export type ProblemCode =
  /** The server says that there is no such page. */
  | "not-found"
  | "gone"
  /** 401, 402, 403, 451 and the like. */
  | "forbidden"
  | "refused-by-site"
  | "too-many-requests"
  | "site-down"
  | "timeout"
  | "unreachable"
  | "unknown-host"
  | "private-address"
  | "bad-redirect"
  | "too-large"
  | "too-slow"
  | "not-a-page"
  | "no-article"
  | "unreadable"
  | "robots";

/** Trying again cannot help. */
export class PageProblem extends Fatal {
  readonly code: string;
  constructor(code: ProblemCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = `ARTICLES_${code.toUpperCase().replaceAll("-", "_")}`;
  }
}

/** It may be better in a while. */
export class PassingProblem extends Error {
  override readonly name = "PassingProblem";
  readonly code: string;
  constructor(code: ProblemCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = `ARTICLES_${code.toUpperCase().replaceAll("-", "_")}`;
  }
}

/** The site says when. */
export class LaterProblem extends RetryAfter {
  readonly code: string;
  constructor(code: ProblemCode, seconds: number, message: string) {
    super(`${seconds}s`, message);
    this.code = `ARTICLES_${code.toUpperCase().replaceAll("-", "_")}`;
  }
}
