// A chart, and the same as a table for who wants figures or cannot see it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { time } from "../format.ts";
import { theme } from "../frame/theme.ts";

export interface Line {
  name: string;
  /** A colour of the theme: --chart-1 and so on. */
  colour: string;
  values: (number | null)[];
  isDashed?: boolean;
  isFilled?: boolean;
}

export interface ChartProps {
  title: string;
  /** In seconds. */
  at: number[];
  lines: Line[];
  write(value: number): string;
  /** From when to when, in seconds, whether there is something or not. */
  span?: [number, number];
}

const HEIGHT = 190;

export function Chart({ title, at, lines, write, span }: ChartProps) {
  const [isTable, showTable] = useState(false);
  const summary = useMemo(() => summaryOf(lines, write), [lines]);
  return (
    <figure class="chart">
      <figcaption class="chart-head">
        <span class="chart-legend">
          {lines.map(({ name, colour, isDashed }) => (
            <span key={name} class="chart-key">
              <span
                class={`chart-mark chart-mark-${colour}${isDashed ? " chart-mark-dashed" : ""}`}
                aria-hidden="true"
              />
              {name}
            </span>
          ))}
        </span>
        <button type="button" class="button button-small" aria-pressed={isTable} onClick={() => showTable(!isTable)}>
          {isTable ? "Chart" : "Table"}
        </button>
      </figcaption>
      {isTable ? (
        <ChartTable title={title} at={at} lines={lines} write={write} />
      ) : (
        <Drawing title={`${title}. ${summary}`} at={at} lines={lines} write={write} {...(span ? { span } : {})} />
      )}
    </figure>
  );
}

function summaryOf(lines: Line[], write: (value: number) => string): string {
  return lines
    .map(({ name, values }) => {
      const last = values.findLast((value) => value !== null);
      return `${name}: ${last === undefined || last === null ? "nothing" : `now ${write(last)}`}`;
    })
    .join(", ");
}

function ChartTable({ title, at, lines, write }: ChartProps) {
  const rows = at.map((second, index) => ({ second, index })).toReversed();
  return (
    <div class="chart-table" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map(({ name }) => (
              <th key={name} scope="col" class="figure">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ second, index }) => (
            <tr key={second}>
              <th scope="row">{time(second * 1_000)}</th>
              {lines.map(({ name, values }) => (
                <td key={name} class="figure">
                  {values[index] === null || values[index] === undefined ? "–" : write(values[index])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Drawing({ title, at, lines, write, span }: ChartProps) {
  const range = useRef(span);
  range.current = span;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const names = lines.map(({ name }) => name).join();
  const look = theme.value;
  const data = [at, ...lines.map(({ values }) => values)] as uPlot.AlignedData;
  useEffect(() => {
    const element = place.current!;
    const colour = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
    const axis = {
      stroke: colour("--quiet"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui",
    };
    const made = new uPlot(
      {
        width: element.clientWidth || 300,
        height: HEIGHT,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        scales: {
          x: { range: (_, least, most) => range.current ?? [least, most] },
          y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(most ?? 0, 1) * 1.08] },
        },
        axes: [
          { ...axis, size: 30, gap: 6, values: (_, values) => timesOf(values) },
          {
            ...axis,
            size: 56,
            gap: 6,
            values: (_, values) => values.map((value) => (value === null ? "" : write(value))),
          },
        ],
        series: [
          {},
          ...lines.map(({ name, colour: of, isDashed, isFilled }) => ({
            label: name,
            stroke: colour(`--${of}`),
            width: 1.75,
            spanGaps: false,
            points: { show: at.length < 3 },
            ...(isDashed ? { dash: [5, 4] } : {}),
            ...(isFilled ? { fill: `${colour(`--${of}`)}22` } : {}),
          })),
        ],
      },
      data,
      element,
    );
    plot.current = made;
    const sizing = new ResizeObserver(() => made.setSize({ width: element.clientWidth || 300, height: HEIGHT }));
    sizing.observe(element);
    return () => {
      sizing.disconnect();
      made.destroy();
    };
  }, [names, look]);
  useEffect(() => plot.current?.setData(data), [at, lines]);
  return <div class="chart-drawing" ref={place} role="img" aria-label={title} />;
}

/** Times, or days where the lines are a day apart. */
function timesOf(seconds: number[]): string[] {
  const isLong = (seconds.at(-1) ?? 0) - (seconds[0] ?? 0) > 86_400;
  return seconds.map((second) => (isLong ? time(second * 1_000).slice(0, 6) : time(second * 1_000, false).slice(0, 5)));
}

/** A line without axes, for a row of a table. */
export function Spark({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(1, ...values);
  const points = values
    .map((value, index) => `${(index / Math.max(1, values.length - 1)) * 100},${24 - (value / most) * 22}`)
    .join(" ");
  return (
    <svg class="spark" viewBox="0 0 100 25" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points} />
    </svg>
  );
}
