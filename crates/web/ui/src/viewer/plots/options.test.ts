import { describe, expect, it } from 'vitest';
import { plotOptions, plotQuery } from './options';

describe('plot options', () => {
  it('are read from the query', () => {
    expect(plotOptions(new URLSearchParams('ema=0.4&x=trajectories&ood=true'))).toEqual({ ema: 0.4, x: 'trajectories', ood: true });
    expect(plotOptions(new URLSearchParams('ema=7&x=time&ood=maybe'))).toEqual({ ema: 1, x: 'iterations', ood: false });
  });
  it('are sent only if they differ from the defaults', () => {
    expect(plotQuery({ ema: 0.4, x: 'trajectories', ood: true })).toEqual({ ema: 0.4, x: 'trajectories', ood: 'true' });
    expect(Object.values(plotQuery({ ema: 1, x: 'iterations', ood: false })).every((value) => value === undefined)).toBe(true);
  });
});
