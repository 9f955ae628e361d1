// Which model this process embeds with, by its full label. The dimension is the provider's to say: it is asked once, with one
// short text, and again after it was found to have changed.
import { type Embedded, type Embedder, embedTexts, EmbedderWrong, tooSlow } from "./embedders/embedder.ts";

export interface Model {
  /** undefined: not asked yet. */
  readonly known: string | undefined;
  label(signal: AbortSignal): Promise<string>;
  /** Refuses what does not fit the label. */
  embed(label: string, texts: readonly string[], signal: AbortSignal, start: number): Promise<Float32Array[]>;
  embedQuery(text: string, signal: AbortSignal): Promise<Embedded>;
}

export function makeModel(embedder: Embedder, timeoutMs: number): Model {
  let known: string | undefined;
  const learn = async (text: string, signal: AbortSignal): Promise<Embedded> => {
    // By a timer of our own: Node 20 forgets a timeout that only any() knows of.
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(tooSlow(timeoutMs)), timeoutMs);
    try {
      const answer = await embedTexts(embedder, [text], AbortSignal.any([signal, late.signal]));
      known = answer.label;
      return answer;
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    get known() {
      return known;
    },
    label: async (signal) => known ?? (await learn("dimension", signal)).label,
    async embed(label, texts, signal, start) {
      const answer = await embedTexts(embedder, texts, signal, start);
      if (answer.label === label) return answer.vectors;
      known = undefined;
      throw new EmbedderWrong(`The embedder was ${label} before, and is ${answer.label} now.`);
    },
    embedQuery: learn,
  };
}
