/** The port or the host cannot be had; nothing was started. */
export class PortUnavailable extends Error {
  override readonly name = "PortUnavailable";
  readonly hint: string;
  constructor(message: string, hint: string, cause: Error) {
    super(message, { cause });
    this.hint = hint;
  }
}
