// I6, I7, I9: who owned a job when, as the audit has it.
import type { Check } from "../check.ts";
import type { AuditFact, Facts } from "../facts.ts";

export interface AboutOwners {
  check: Check;
  effects: Facts["effects"];
  /** Somebody asked that it runs again once it is dead, or that it is put away then; how often is for asked.ts. */
  mayRise: boolean;
  mayGo: boolean;
  /** Its enqueue may have been done twice: then it has a second life. */
  mayReturn: boolean;
}

export function judgeOwners(id: string, entries: readonly AuditFact[], about: AboutOwners): void {
  const { check, effects, mayRise, mayGo, mayReturn } = about;
  let owner: string | null = null;
  let isLight = false;
  let last: { owner: string; xact: string } | undefined;
  let claims = 0;
  let isOver = false;
  let later: string | undefined;
  let next = 0;
  const release = (xact: string): void => {
    if (owner !== null) last = { owner, xact };
    owner = null;
    isLight = false;
  };
  const effectsUntil = (seq: number): void => {
    for (; next < effects.length && effects[next]!.seq < seq; next += 1) {
      const { token, what } = effects[next]!;
      const holder = owner;
      check("I6", holder === token, () => `job ${id}: ${what} was written by ${token} while ${holder} owned the job`);
    }
  };
  for (const { seq, xact, what, token, claimCount } of entries) {
    effectsUntil(seq);
    const [from, to] = what.split(">");
    if (mayRise && what === "dead>pending") {
      isOver = false;
    } else if (mayReturn && isOver && what === "accepted") {
      isOver = false;
      claims = 0;
    } else if (isOver) {
      if (mayGo && (what === "dead>gone" || what === "ended:dead")) continue;
      // The rows of a claim that was settled go in the same transaction, or with a later beat.
      if (what !== "light-end") later ??= what;
    } else if (what === "light" || to === "running") {
      const isMark = isLight && owner === token;
      const before = owner;
      check("I7", owner === null || isMark, () => `job ${id} was given to ${token} while ${before} had it`);
      if (to === "running") {
        check("I6", claimCount! > claims, () => `job ${id}: claim ${claimCount} after claim ${claims}`);
        claims = claimCount!;
      }
      owner = token;
      isLight = what === "light";
    } else if (what === "light-end") {
      if (isLight && owner === token) release(xact);
    } else if (from === "running" || to === "dead") {
      const before = owner;
      const isOwn = from !== "running" || owner === token;
      check("I6", isOwn, () => `job ${id}: ${what} ended the run of ${token}, the owner was ${before}`);
      release(xact);
      if (to === "dead") isOver = true;
    } else if (what.startsWith("ended:")) {
      const accepted: string | null = owner ?? (last?.xact === xact ? last.owner : null);
      if (what === "ended:done") {
        check(
          "I6",
          accepted !== null && accepted === token,
          () => `job ${id} was settled by ${token}, the owner was ${accepted}`,
        );
      }
      isOver = true;
    }
  }
  effectsUntil(Infinity);
  if (isOver) check("I9", later === undefined, () => `job ${id} had ended, and then: ${later}`);
}
