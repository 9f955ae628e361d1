// What cannot be done as asked: becomes the answer of a route, with a code, a reason and the next step.
export class Refused extends Error {
  override readonly name = "Refused";
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  constructor(status: number, code: string, message: string, hint: string) {
    super(message);
    this.status = status;
    this.code = `CATALOG_${code}`;
    this.hint = hint;
  }
}
