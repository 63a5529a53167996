import { describe, expect, it } from 'vitest';
import { cellAt, fit, moved } from './geometry';

describe('geometry', () => {
  it('chooses the largest size that fits', () => {
    expect(fit(10, 800, 400).size).toBe(64);
    const many = fit(10_000, 900, 600);
    expect(many.size).toBe(7);
    expect(many.rows * many.size).toBeLessThanOrEqual(600);
    expect(fit(1_000_000, 900, 600).size).toBe(5);
    expect(fit(0, 0, 0)).toMatchObject({ columns: 1, rows: 0 });
  });
  it('finds the cell under a point', () => {
    const grid = { columns: 4, rows: 3, size: 10, gap: 1 };
    expect([cellAt(grid, 10, 5, 5), cellAt(grid, 10, 39, 15), cellAt(grid, 10, 41, 5), cellAt(grid, 10, 35, 25), cellAt(grid, 10, 5, -1)])
      .toEqual([0, 7, -1, -1, -1]);
  });
  it('keeps the cursor inside the grid', () => {
    const grid = { columns: 4, rows: 3, size: 10, gap: 1 };
    const go = (key: string, from: number) => moved(key, from, 10, grid, 2);
    expect([go('ArrowRight', 9), go('ArrowLeft', 0), go('ArrowDown', 7), go('ArrowDown', 4), go('ArrowUp', 2), go('End', 1), go('Home', 5), go('PageDown', 1), go('x', 1)])
      .toEqual([9, 0, 7, 8, 2, 9, 0, 9, null]);
  });
});
