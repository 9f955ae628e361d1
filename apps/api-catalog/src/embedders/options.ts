// Which embedder: what was given, or what the environment says. A wrong one is an error at start.
import { OptionInvalid } from "holdfast";
import type { Embedder } from "./embedder.ts";
import { LEXICAL_DIMENSION, makeLexicalEmbedder } from "./lexical.ts";
import { makeOllamaEmbedder } from "./ollama.ts";
import { makeOpenAiEmbedder } from "./openai.ts";

export type EmbedderOptions =
  | { provider: "lexical"; dimension?: number }
  | { provider: "ollama"; url?: string; model: string }
  | { provider: "openai"; url: string; model: string; apiKey?: string; dimensions?: number }
  | { provider: "off" };

type Environment = Readonly<Record<string, string | undefined>>;

const OLLAMA_URL = "http://127.0.0.1:11434";

/** undefined: there is none, and nothing is embedded. */
export function makeEmbedder(given: EmbedderOptions): Embedder | undefined {
  switch (given?.provider) {
    case "off":
      return undefined;
    case "lexical": {
      const { dimension = LEXICAL_DIMENSION } = given;
      if (Number.isInteger(dimension) && dimension >= 16 && dimension <= 8_192) return makeLexicalEmbedder(dimension);
      throw new OptionInvalid(`embedder.dimension is ${String(dimension)}.`, "Give a whole number from 16 to 8192.");
    }
    case "ollama":
      return makeOllamaEmbedder({ url: checkUrl(given.url ?? OLLAMA_URL), model: checkModel(given.model) });
    case "openai":
      return makeOpenAiEmbedder({ ...given, url: checkUrl(given.url), model: checkModel(given.model) });
    default:
      throw new OptionInvalid(
        `apiCatalog().embedder.provider is ${JSON.stringify((given as { provider?: unknown } | undefined)?.provider)}.`,
        'Give "lexical", "ollama", "openai" or "off".',
      );
  }
}

/** API_CATALOG_EMBEDDER, _URL, _MODEL, _KEY. */
export function embedderFrom(env: Environment): EmbedderOptions {
  const provider = env["API_CATALOG_EMBEDDER"] ?? "lexical";
  const url = env["API_CATALOG_EMBEDDER_URL"];
  const model = env["API_CATALOG_EMBEDDER_MODEL"] ?? "";
  const apiKey = env["API_CATALOG_EMBEDDER_KEY"];
  if (provider === "ollama") return { provider, model, ...(url !== undefined && { url }) };
  if (provider === "openai") return { provider, model, url: url ?? "", ...(apiKey !== undefined && { apiKey }) };
  return { provider } as EmbedderOptions;
}

function checkUrl(url: string): string {
  // Not said again: it would stand in logs and on pages.
  if (typeof url === "string" && URL.canParse(url) && (new URL(url).username || new URL(url).password)) {
    throw new OptionInvalid(
      "The embedder's url has a name or a password in it.",
      'Take it out; a key of "openai" is apiKey (API_CATALOG_EMBEDDER_KEY).',
    );
  }
  if (typeof url === "string" && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new OptionInvalid(
    `The embedder's url is ${JSON.stringify(url)}.`,
    'Give where it answers, such as "http://127.0.0.1:11434" (API_CATALOG_EMBEDDER_URL).',
  );
}

function checkModel(model: string): string {
  if (typeof model === "string" && /^[\w./:@-]{1,200}$/.test(model)) return model;
  throw new OptionInvalid(
    `The embedder's model is ${JSON.stringify(model)}.`,
    'Give its name, such as "nomic-embed-text" (API_CATALOG_EMBEDDER_MODEL).',
  );
}
