// The geometry of the curve of success. Pure functions; see curve.test.ts.

import { rate } from './summary';
import type { Success } from './types';

export interface Frame { width: number; height: number; left: number; right: number; top: number; bottom: number }
export interface Point { x: number; y: number; success: Success }
export interface Scale { x: (iteration: number) => number; y: (share: number) => number; iterations: number[] }

/** Returns the scale from iterations and shares (0 to 1) to pixels, and the iterations to label: at most `labels`. */
export function scale(success: Success[], frame: Frame, labels = 10): Scale {
  const numbers = success.map(({ iteration }) => iteration);
  const low = Math.min(...numbers, Infinity);
  const high = Math.max(...numbers, -Infinity);
  const width = frame.width - frame.left - frame.right;
  const height = frame.height - frame.top - frame.bottom;
  const x = (iteration: number) => frame.left + (high > low ? ((iteration - low) / (high - low)) * width : width / 2);
  const y = (share: number) => frame.top + (1 - share) * height;
  if (!numbers.length) return { x, y, iterations: [] };
  const step = Math.max(1, Math.ceil((high - low + 1) / labels));
  const iterations = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, index) => low + index * step);
  return { x, y, iterations };
}

export function points(success: Success[], { x, y }: Scale): Point[] {
  const sorted = [...success].sort((a, b) => a.iteration - b.iteration);
  return sorted.map((one) => ({ x: x(one.iteration), y: y(rate(one)), success: one }));
}

export const polyline = (points: Point[]): string => points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
