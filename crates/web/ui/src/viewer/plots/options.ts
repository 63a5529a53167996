// How the charts are computed, stored in the page's query and sent to the server. Pure functions; see options.test.ts.

import type { XAxis } from '../data/types';

export interface PlotOptions {
  /** The weight of the new value in the moving average; 1 is unsmoothed. */
  ema: number;
  x: XAxis;
  /** Of the test tasks only those out of distribution. */
  ood: boolean;
}

/** Reads the options from the page's query; invalid values count as absent. */
export function plotOptions(query: URLSearchParams): PlotOptions {
  const ema = Number(query.get('ema') ?? '1');
  return {
    ema: ema > 0 && ema < 1 ? ema : 1,
    x: query.get('x') === 'trajectories' ? 'trajectories' : 'iterations',
    ood: query.get('ood') === 'true',
  };
}

/** Returns the parameters that differ from the server's defaults. */
export function plotQuery({ ema, x, ood }: PlotOptions): Record<string, string | number | undefined> {
  return { ema: ema < 1 ? ema : undefined, x: x === 'trajectories' ? x : undefined, ood: ood ? 'true' : undefined };
}
