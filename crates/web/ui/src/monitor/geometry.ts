// The layout of the cells. Pure functions; see geometry.test.ts.

export interface Geometry { columns: number; rows: number; size: number; gap: number }

const MIN_SIZE = 5;
const MAX_SIZE = 64;

/** Returns the largest cell size at which `count` cells fit into a box, or the smallest size if they do not fit. */
export function fit(count: number, width: number, height: number, zoom = 1): Geometry {
  let size = MAX_SIZE;
  while (size > MIN_SIZE && Math.floor(width / size) * Math.floor(height / size) < count) size -= 1;
  size = Math.min(96, Math.max(MIN_SIZE, Math.round(size * zoom)));
  const columns = Math.max(1, Math.floor(width / size));
  return { columns, rows: Math.ceil(count / columns), size, gap: size < 9 ? 1 : 2 };
}

/** Returns the number of the cell at a point, or -1 if there is none. */
export function cellAt(geometry: Geometry, count: number, x: number, y: number): number {
  const column = Math.floor(x / geometry.size);
  const number = Math.floor(y / geometry.size) * geometry.columns + column;
  return column >= 0 && column < geometry.columns && y >= 0 && number < count ? number : -1;
}

/** Returns the cell that a key moves the cursor to; `null` if the key does not move it. */
export function moved(key: string, from: number, count: number, geometry: Geometry, page: number): number | null {
  const steps: Record<string, number> = {
    ArrowLeft: -1, ArrowRight: 1, ArrowUp: -geometry.columns, ArrowDown: geometry.columns,
    PageUp: -geometry.columns * page, PageDown: geometry.columns * page,
  };
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  const step = steps[key];
  if (step === undefined || count === 0) return null;
  const to = from + step;
  // Up in the first row and down in the last row do not move the cursor.
  return Math.abs(step) === geometry.columns && (to < 0 || to >= count) ? from : Math.min(count - 1, Math.max(0, to));
}
