// The door of the app: re-exports only.
export { apiCatalog } from "./app.ts";
export type { EmbedderOptions } from "./embedders/options.ts";
export type { CatalogOptions } from "./options.ts";
