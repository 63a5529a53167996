import { describe, expect, it } from 'vitest';
import type { Chart } from '../data/types';
import { columns, formatValue, xRange, type Shown } from './series';

const chart: Chart = {
  measure: 'success', title: '', explanation: '', unit: 'share',
  series: [
    { split: 'train', line: 'overall', iterations: [0, 2], x: [0, 2], values: [0.1, null], smoothed: [0.1, null] },
    { split: 'test', line: 'overall', iterations: [1, 2], x: [1, 2], values: [0.4, 0.5], smoothed: null },
    { split: 'test', line: 'hard', iterations: [9], x: [9], values: [1], smoothed: null },
  ],
};

describe('columns', () => {
  it('share one axis and have gaps', () => {
    const { x, columns: found } = columns(chart, { splits: new Set(['train', 'test']), lines: new Set(['overall']) });
    expect(x).toEqual([0, 1, 2]);
    expect(found.map(({ values }) => values)).toStrictEqual([[0.1, undefined, null], [0.1, undefined, null], [undefined, 0.4, 0.5]]);
    expect(found.map(({ isPale }) => isPale)).toEqual([true, false, false]);
  });
  it('use the numbers of trajectories of their split', () => {
    const [train, test] = chart.series.map((series) => ({ ...series, x: series.x.map((position) => position * 10 + (series.split === 'test' ? 5 : 0)) }));
    const { x } = columns({ ...chart, series: [train!, test!] }, { splits: new Set(['train', 'test']), lines: new Set(['overall']) });
    expect(x).toEqual([0, 15, 20, 25]);
  });
  it('share the range of all charts', () => {
    const shown: Shown = { splits: new Set(['train', 'test']), lines: new Set(['overall', 'hard']) };
    const single = { ...chart, series: chart.series.slice(2) };
    expect(xRange([single, chart], shown)).toEqual([0, 9]);
    expect(xRange([single], shown)).toEqual([8.5, 9.5]);
    expect(xRange([], shown)).toEqual([0, 1]);
  });
  it('are formatted with their unit', () => {
    expect([formatValue('share', 0.123), formatValue('count', 12.34), formatValue('count', 1234), formatValue('share', null)])
      .toEqual(['12.3 %', '12.3', '1234', '–']);
  });
});
