// The door of the app: re-exports only.
export { articleImport } from "./app.ts";
export { SampleSite } from "./sample/sample-site.ts";
export type { Article } from "./import-one.ts";
export type { ImportOptions } from "./options.ts";
