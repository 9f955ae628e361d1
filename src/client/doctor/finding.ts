// What a check came to: all is well, a person should look at it, or something is wrong. Everything but the first says
// what to do.

export interface Finding {
  /** Few and fixed: programs may look for it. */
  check: string;
  status: "ok" | "warning" | "problem";
  message: string;
  /** A command, a statement or a sentence. */
  fix: string | null;
}

const make =
  (status: "warning" | "problem") =>
  (check: string, message: string, fix: string): Finding => ({ check, status, message, fix });

export const ok = (check: string, message: string): Finding => ({ check, status: "ok", message, fix: null });
export const warning = make("warning");
export const problem = make("problem");

/** "1 job", "2 jobs". */
export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;
