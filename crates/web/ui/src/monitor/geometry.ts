// Where cells are. Pure; see geometry.test.ts.

export interface Geometry { columns: number; rows: number; size: number; gap: number }

const SMALLEST = 5;
const LARGEST = 64;

/** The largest cells with which `count` of them fit into a box; the smallest when they do not fit at all. */
export function fit(count: number, width: number, height: number, zoom = 1): Geometry {
  let size = LARGEST;
  while (size > SMALLEST && Math.floor(width / size) * Math.floor(height / size) < count) size -= 1;
  size = Math.min(96, Math.max(SMALLEST, Math.round(size * zoom)));
  const columns = Math.max(1, Math.floor(width / size));
  return { columns, rows: Math.ceil(count / columns), size, gap: size < 9 ? 1 : 2 };
}

/** The how manieth cell is under a point; -1 for none. */
export function cellAt(geometry: Geometry, count: number, x: number, y: number): number {
  const column = Math.floor(x / geometry.size);
  const number = Math.floor(y / geometry.size) * geometry.columns + column;
  return column >= 0 && column < geometry.columns && y >= 0 && number < count ? number : -1;
}

/** Where a key takes the cursor. */
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
  // Up from the first row and down from the last stay where they are.
  return Math.abs(step) === geometry.columns && (to < 0 || to >= count) ? from : Math.min(count - 1, Math.max(0, to));
}
