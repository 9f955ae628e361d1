// What OpenAI's API looks like, which many servers offer: POST /v1/embeddings { model, input } -> { data: [{ index, embedding }] }.
import type { Embedder } from "./embedder.ts";
import { postJson } from "./http.ts";

export interface OpenAiOptions {
  /** With or without /v1 at its end. */
  url: string;
  model: string;
  apiKey?: string | undefined;
  dimensions?: number | undefined;
}

export function makeOpenAiEmbedder({ url, model, apiKey, dimensions }: OpenAiOptions): Embedder {
  const name = `openai:${model}`;
  const base = url.replace(/\/+$/, "");
  const address = `${base}${base.endsWith("/v1") ? "" : "/v1"}/embeddings`;
  return {
    name,
    mostTexts: 2_048,
    async embed(texts, signal) {
      const answer = await postJson({
        name,
        url: address,
        headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
        body: { model, input: texts, encoding_format: "float", ...(dimensions !== undefined && { dimensions }) },
        signal,
      });
      return inOrder(answer["data"]);
    },
  };
}

/** Each says which text it is of; a server that does not say has them in order. */
function inOrder(data: unknown): unknown {
  if (!Array.isArray(data)) return undefined;
  const vectors: unknown[] = [];
  for (const [place, each] of (data as { index?: unknown; embedding?: unknown }[]).entries()) {
    const index = typeof each?.index === "number" ? each.index : place;
    if (!Number.isInteger(index) || index < 0 || index >= data.length || index in vectors) return undefined;
    vectors[index] = each?.embedding;
  }
  return vectors;
}
