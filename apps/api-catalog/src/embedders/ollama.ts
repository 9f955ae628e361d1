// Ollama: POST /api/embed { model, input } -> { embeddings }.
import type { Embedder } from "./embedder.ts";
import { postJson } from "./http.ts";

export function makeOllamaEmbedder({ url, model }: { url: string; model: string }): Embedder {
  const name = `ollama:${model}`;
  const address = new URL("api/embed", url.endsWith("/") ? url : `${url}/`).href;
  return {
    name,
    mostTexts: 512,
    async embed(texts, signal) {
      const answer = await postJson({ name, url: address, body: { model, input: texts, truncate: true }, signal });
      return answer["embeddings"];
    },
  };
}
