// Text, values and errors of every shape, for whatever must not be upset by any: see worker/fuzz.ts, and the fuzz.test.ts
// of batches and inbox.
import fc from "fast-check";

export const nastyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "\u0000",
    "a\u0000b",
    "\ud800",
    "\udfff x",
    "'; drop table jobs; --",
    "\u202e",
    "💥".repeat(50),
    "x".repeat(20_000),
  ),
);
export const nastyValue = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withSparseArray: true,
  withTypedArray: true,
  withUnicodeString: true,
  maxDepth: 3,
});
const getters = (text: string): object =>
  Object.defineProperties(new Error("outside"), {
    message: {
      get() {
        throw new Error(text);
      },
    },
    stack: { get: () => text },
  });
/** Made when it is thrown: fast-check looks at what it makes, and some of these must not be looked at. */
export const nastyError = fc.oneof(
  nastyText.map((text) => () => new Error(text)),
  nastyText.map((text) => () => Object.assign(new Error("x"), { name: text, code: text, cause: { text } })),
  nastyText.map((text) => () => getters(text)),
  nastyValue.map((value) => () => value),
  fc.constantFrom(null, undefined, Symbol("thrown"), Math.max).map((value) => () => value),
);
