// Converts the server's series to the columns of a chart. Pure functions; see series.test.ts.

import type { Chart, LineName, Series, Split } from '../data/types';

export interface Column {
  split: Split;
  line: LineName;
  /** Drawn thin and pale: the unsmoothed values next to the smoothed ones. */
  isPale: boolean;
  values: (number | null)[];
}

export interface Columns {
  iterations: number[];
  columns: Column[];
}

export interface Shown {
  splits: Set<Split>;
  lines: Set<LineName>;
}

/** Puts all series on one axis of iterations; `null` where a series has no value. */
export function columns(chart: Chart, shown: Shown): Columns {
  const wanted = chart.series.filter(({ split, line }) => shown.splits.has(split) && shown.lines.has(line));
  const iterations = [...new Set(wanted.flatMap((series) => series.iterations))].sort((a, b) => a - b);
  const aligned = (series: Series, values: (number | null)[]) => {
    const byIteration = new Map(series.iterations.map((iteration, index) => [iteration, values[index] ?? null]));
    return iterations.map((iteration) => byIteration.get(iteration) ?? null);
  };
  const found = wanted.flatMap((series): Column[] => {
    const { split, line } = series;
    const measured = { split, line, isPale: series.smoothed !== null, values: aligned(series, series.values) };
    return series.smoothed ? [measured, { split, line, isPale: false, values: aligned(series, series.smoothed) }] : [measured];
  });
  return { iterations, columns: found };
}

export function formatValue(unit: Chart['unit'], value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (unit === 'share') return `${(value * 100).toFixed(1)} %`;
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}
