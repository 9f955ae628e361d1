// What a check came to: all is well, a person should look at it, or something is wrong. Everything but the first says
// what to do.

/** What one check of `hf.doctor` came to. */
export interface Finding {
  /** Few and fixed: programs may look for it. */
  check: string;
  status: "ok" | "warning" | "problem";
  message: string;
  /** A command, a statement or a sentence. */
  fix: string | null;
  /** What `hf.repair` can do about it without harm to anybody; null: a person has to decide or to do it. */
  repair: Repair | null;
}

/** Something that `hf.repair(id)` can mend. */
export interface Repair {
  /** `create-index jobs_claimable`. */
  id: string;
  /** In words: "creates the index jobs_claimable". */
  what: string;
}

const make =
  (status: "warning" | "problem") =>
  (check: string, message: string, fix: string, repair: Repair | null = null): Finding => ({
    check,
    status,
    message,
    fix,
    repair,
  });

export const ok = (check: string, message: string): Finding => ({
  check,
  status: "ok",
  message,
  fix: null,
  repair: null,
});
export const warning = make("warning");
export const problem = make("problem");

/** "1 job", "2 jobs". */
export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;
