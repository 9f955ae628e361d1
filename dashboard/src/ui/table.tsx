// A table that is a list of cards on a narrow screen. Its roles are written out: some browsers forget them when a table is
// not laid out as one.
import type { ComponentChildren } from "preact";
import { replaceQuery } from "../router.ts";

export interface Column<Row> {
  head: ComponentChildren;
  /** For the card, and for those who cannot see the head. */
  label: string;
  cell(row: Row, index: number): ComponentChildren;
  /** Figures are aligned to the right; acts are buttons. */
  kind?: "figure" | "wide" | "tight" | "acts";
}

export interface TableProps<Row> {
  caption: string;
  columns: (Column<Row> | false | undefined)[];
  rows: Row[];
  keyOf(row: Row, index: number): string;
  rowClass?(row: Row): string | undefined;
  /** Instead of a table without rows. */
  empty?: ComponentChildren;
  /** There is more: what to write into the address, and under which name, for the next page. */
  next?: string | null;
  pageBy?: "before" | "after";
}

export function Table<Row>(props: TableProps<Row>) {
  const { rows, empty, next, pageBy = "before" } = props;
  return (
    <>
      {rows.length === 0 && empty !== undefined ? empty : <Rows {...props} />}
      {typeof next === "string" && (
        <div class="row row-end pad">
          <button type="button" class="button" onClick={() => replaceQuery({ [pageBy]: next })}>
            {pageBy === "before" ? "Older" : "More"}
          </button>
        </div>
      )}
    </>
  );
}

function Rows<Row>({ caption, columns, rows, keyOf, rowClass }: TableProps<Row>) {
  const shown = columns.filter((column): column is Column<Row> => !!column);
  return (
    <div class="table-place">
      <table role="table" class="table">
        <caption class="sr-only">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {shown.map((column) => (
              <th key={column.label} role="columnheader" scope="col" class={column.kind}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row, index) => (
            <tr key={keyOf(row, index)} role="row" class={rowClass?.(row)}>
              {shown.map((column) => (
                <td key={column.label} role="cell" class={column.kind} data-label={column.label}>
                  {column.cell(row, index)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const plain = <Row,>(
  label: string,
  cell: (row: Row, index: number) => ComponentChildren,
  kind?: Column<Row>["kind"],
): Column<Row> => ({ head: label, label, cell, ...(kind ? { kind } : {}) });
