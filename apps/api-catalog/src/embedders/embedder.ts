// What turns texts into vectors. Whoever it is, what comes back is checked here: as many as were sent, all of one length,
// of numbers, and none that is zero. A wrong answer is an error that says which texts it was about.
export interface Embedder {
  /** Which provider and model: "ollama:nomic-embed-text". */
  readonly name: string;
  /** Texts it takes in one call. */
  readonly mostTexts: number;
  /** Raw vectors, unchecked. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<unknown>;
}

export interface Embedded {
  /** With its dimension: vectors of two labels are never compared. */
  label: string;
  vectors: Float32Array[];
}

export class EmbedderWrong extends Error {
  override readonly name = "EmbedderWrong";
  readonly code = "CATALOG_EMBEDDER_WRONG";
}

/** Why a call is aborted whose time is over: with the limit that it was. */
export const tooSlow = (ms: number): DOMException =>
  new DOMException(`The embedder did not answer within ${ms / 1_000} s.`, "TimeoutError");

/** `start` is the place of the first text, for the message. */
export async function embedTexts(
  embedder: Embedder,
  texts: readonly string[],
  signal: AbortSignal,
  start = 0,
): Promise<Embedded> {
  const vectors: Float32Array[] = [];
  for (let place = 0; place < texts.length; place += embedder.mostTexts) {
    const part = texts.slice(place, place + embedder.mostTexts);
    const answer = await embedder.embed(part, signal);
    vectors.push(...checked(embedder.name, answer, part.length, start + place));
  }
  const dimension = vectors[0]?.length ?? 0;
  const other = vectors.find((vector) => vector.length !== dimension);
  if (other) throw wrong(embedder.name, `vectors of ${dimension} and of ${other.length} numbers`, start, texts.length);
  return { label: `${embedder.name}:${dimension}`, vectors };
}

function checked(name: string, answer: unknown, count: number, start: number): Float32Array[] {
  if (!Array.isArray(answer)) throw wrong(name, "no list of vectors", start, count);
  if (answer.length !== count) throw wrong(name, `${answer.length} vectors`, start, count);
  return answer.map((vector: unknown, index) => {
    const numbers = normalised(vector);
    if (!numbers) throw wrong(name, "something that is no vector, or a zero one", start + index, 1);
    return numbers;
  });
}

/** Of length 1; undefined if it is no vector, or has no direction. */
function normalised(vector: unknown): Float32Array | undefined {
  if (!Array.isArray(vector) && !(vector instanceof Float32Array)) return undefined;
  if (vector.length === 0 || vector.length > 16_000) return undefined;
  let sum = 0;
  for (const each of vector as unknown[]) {
    if (typeof each !== "number" || !Number.isFinite(each)) return undefined;
    sum += each * each;
  }
  if (!(sum > 0) || !Number.isFinite(sum)) return undefined;
  const length = Math.sqrt(sum);
  return Float32Array.from(vector as ArrayLike<number>, (each) => each / length);
}

function wrong(name: string, what: string, start: number, count: number): EmbedderWrong {
  return new EmbedderWrong(`${name} answered with ${what} for texts ${start + 1} to ${start + count}.`);
}
