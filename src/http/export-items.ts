// All items of a batch as a download, page by page as fast as the reader takes them: one JSON object on each line, or CSV.
// If it cannot go on, the connection breaks off: nobody takes a part for the whole.
import { toItemView } from "./batch-view.ts";
import type { ItemView } from "./contracts/batches.ts";
import { type Cell, csvLine } from "./csv.ts";
import type { Eyes } from "./eyes.ts";
import type { ItemPageRead } from "./item-pages.ts";
import { toWebStream } from "./web-stream.ts";

export type ExportFormat = "ndjson" | "csv";

const TYPES: Record<ExportFormat, string> = { ndjson: "application/x-ndjson", csv: "text/csv; charset=utf-8" };
const PIECE = 65_536;

const asJson = (value: unknown): Cell => (value === null ? null : JSON.stringify(value));

const COLUMNS: readonly [string, (item: ItemView) => Cell][] = [
  ["seq", ({ seq }) => seq],
  ["state", ({ state }) => state],
  ["attempt", ({ attempt }) => attempt],
  ["startedAt", ({ startedAt }) => startedAt],
  ["endedAt", ({ endedAt }) => endedAt],
  ["error", ({ error }) => error && `${error.name}: ${error.message}`],
  ["jobId", ({ jobId }) => jobId],
  ["payload", ({ payload }) => asJson(payload)],
  ["result", ({ result }) => asJson(result)],
];

export interface ExportInput {
  batchId: string;
  kind: string;
  pages: AsyncIterable<ItemPageRead>;
  format: ExportFormat;
  eyes: Eyes;
  method: string;
}

export function sendExport(input: ExportInput): Response {
  const { batchId, format, method } = input;
  const headers = {
    "content-type": TYPES[format],
    "content-disposition": `attachment; filename="batch-${batchId}.${format}"`,
  };
  // A HEAD is a question about the headers.
  if (method === "HEAD") return new Response(null, { headers });
  return new Response(toWebStream(pieces(input)), { headers });
}

async function* pieces({ pages, format, eyes, kind }: ExportInput): AsyncGenerator<Uint8Array> {
  let text = format === "csv" ? csvLine(COLUMNS.map(([name]) => name)) : "";
  for await (const { items } of pages) {
    for (const item of items) {
      const view = toItemView(item, eyes, kind);
      text += format === "csv" ? csvLine(COLUMNS.map(([, of]) => of(view))) : `${JSON.stringify(view)}\n`;
      if (text.length < PIECE) continue;
      yield Buffer.from(text);
      text = "";
    }
  }
  yield Buffer.from(text);
}
