// What a page of docs/moving says, as it says it: the blocks of one language under a heading.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "../../docs");

export function blockOf(page: string, heading: string | undefined, language: string): string {
  const text = readFileSync(join(folder, page), "utf8");
  const part =
    heading === undefined ? text : (text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? "");
  const found = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "ms").exec(part);
  if (!found) throw new Error(`docs/${page} has no ${language} under ${heading ?? "its beginning"}.`);
  return found[1]!;
}

export function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(folder, page), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map((found) => found[1]!);
}
