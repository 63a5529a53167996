// Converts the server's series to the columns of a chart. Pure functions; see series.test.ts.

import type { Chart, LineName, Series, Split } from '../data/types';

export interface Column {
  split: Split;
  line: LineName;
  /** Drawn thin and pale: the unsmoothed values next to the smoothed ones. */
  isPale: boolean;
  /** `null` is a gap in the line; `undefined` is a position of another series, across which the line continues. */
  values: (number | null | undefined)[];
}

export interface Columns {
  /** Iterations or numbers of trajectories, in order. */
  x: number[];
  columns: Column[];
}

export interface Shown {
  splits: Set<Split>;
  lines: Set<LineName>;
}

/** Puts all series on one x axis. */
export function columns(chart: Chart, shown: Shown): Columns {
  const wanted = chart.series.filter(({ split, line }) => shown.splits.has(split) && shown.lines.has(line));
  const x = [...new Set(wanted.flatMap((series) => series.x))].sort((a, b) => a - b);
  const aligned = (series: Series, values: (number | null)[]) => {
    const byPosition = new Map(series.x.map((position, index) => [position, values[index]]));
    return x.map((position) => byPosition.get(position));
  };
  const found = wanted.flatMap((series): Column[] => {
    const { split, line } = series;
    const measured = { split, line, isPale: series.smoothed !== null, values: aligned(series, series.values) };
    return series.smoothed ? [measured, { split, line, isPale: false, values: aligned(series, series.smoothed) }] : [measured];
  });
  return { x, columns: found };
}

/** Returns the lowest and highest position of all charts, which they share so that they can be compared. */
export function xRange(charts: Chart[], shown: Shown): [number, number] {
  const all = charts.flatMap((chart) => columns(chart, shown).x);
  const [low, high] = all.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

export function formatValue(unit: Chart['unit'], value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (unit === 'share') return `${(value * 100).toFixed(1)} %`;
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}
