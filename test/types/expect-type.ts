/** Compiles only if the two types are the same, not merely assignable. */
export type Same<Left, Right> =
  (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;

export function expectType<_IsSame extends true>(): void {}
