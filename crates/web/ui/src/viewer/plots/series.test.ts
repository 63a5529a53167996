import { describe, expect, it } from 'vitest';
import type { Chart } from '../data/types';
import { columns, formatValue } from './series';

const chart: Chart = {
  measure: 'success', title: '', explanation: '', unit: 'share',
  series: [
    { split: 'train', line: 'overall', iterations: [0, 2], values: [0.1, null], smoothed: [0.1, null] },
    { split: 'test', line: 'overall', iterations: [1, 2], values: [0.4, 0.5], smoothed: null },
    { split: 'test', line: 'hard', iterations: [9], values: [1], smoothed: null },
  ],
};

describe('columns', () => {
  it('share one axis and have gaps', () => {
    const { iterations, columns: found } = columns(chart, { splits: new Set(['train', 'test']), lines: new Set(['overall']) });
    expect(iterations).toEqual([0, 1, 2]);
    expect(found.map(({ values }) => values)).toEqual([[0.1, null, null], [0.1, null, null], [null, 0.4, 0.5]]);
    expect(found.map(({ isPale }) => isPale)).toEqual([true, false, false]);
  });
  it('are formatted with their unit', () => {
    expect([formatValue('share', 0.123), formatValue('count', 12.34), formatValue('count', 1234), formatValue('share', null)])
      .toEqual(['12.3 %', '12.3', '1234', '–']);
  });
});
