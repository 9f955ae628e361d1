// What a command ends with when it cannot go on: a sentence, what to do next, and the exit code.
export class Problem extends Error {
  override readonly name = "Problem";
  readonly hint: string;
  readonly exitCode: number;
  /** The code of the error that a server answered with. */
  readonly code: string | undefined;
  constructor(message: string, hint: string, exitCode: number, options: { code?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.hint = hint;
    this.exitCode = exitCode;
    this.code = options.code;
  }
}
