import { describe, expect, it } from 'vitest';
import { points, polyline, scale } from './curve';
import type { Success } from './types';

const frame = { width: 120, height: 70, left: 10, right: 10, top: 10, bottom: 10 };
const at = (iteration: number, successes: number): Success => ({ split: 'train', iteration, scored: 4, successes });

describe('curve', () => {
  it('spans the frame from the first to the last iteration', () => {
    const success = [at(3, 4), at(1, 0), at(2, 1)];
    const line = points(success, scale(success, frame));
    expect(polyline(line)).toBe('10.0,60.0 60.0,47.5 110.0,10.0');
  });
  it('puts a single iteration into the middle', () => {
    const success = [at(7, 2)];
    expect(polyline(points(success, scale(success, frame)))).toBe('60.0,35.0');
    expect(scale(success, frame).iterations).toEqual([7]);
  });
  it('labels few iterations of many', () => {
    const success = Array.from({ length: 100 }, (_, number) => at(number, 1));
    expect(scale(success, frame, 5).iterations).toEqual([0, 20, 40, 60, 80]);
    expect(scale([], frame).iterations).toEqual([]);
  });
});
