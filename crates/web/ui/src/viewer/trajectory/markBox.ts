// Finds the outline of a numbered mark on a screenshot. The trajectory does not record its position, but the farm paints each
// mark in a colour derived from its number (crates/browser/src/marks/colour.rs). On screenshots marked by other systems nothing
// is found and nothing is drawn. Pure functions; see markBox.test.ts.

const GOLDEN_ANGLE = 137.507764;
/** Shorter runs of the colour belong to letters or are coincidence. */
const MIN_RUN = 8;

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export type Colour = [number, number, number];

/** Returns the colour of the mark with a number. */
export function markColour(shown: number): Colour {
  const hue = (shown * GOLDEN_ANGLE) % 360;
  const lightness = shown % 2 === 0 ? 0.38 : 0.48;
  const reach = 0.82 * Math.min(lightness, 1 - lightness);
  const channel = (shift: number) => {
    const k = (shift + hue / 30) % 12;
    return Math.round((lightness - reach * Math.max(-1, Math.min(1, k - 3, 9 - k))) * 255);
  };
  return [channel(0), channel(8), channel(4)];
}

interface Edge {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Finds horizontal runs of exactly that colour and groups those with the same ends: the top and bottom of an outline. */
function edges(pixels: Uint8ClampedArray, width: number, height: number, [red, green, blue]: Colour): Edge[] {
  const found = new Map<number, Edge>();
  for (let y = 0; y < height; y += 1) {
    let from = -1;
    for (let x = 0; x <= width; x += 1) {
      const at = (y * width + x) * 4;
      const is = x < width && pixels[at] === red && pixels[at + 1] === green && pixels[at + 2] === blue;
      if (is && from < 0) from = x;
      if (!is && from >= 0) {
        if (x - from >= MIN_RUN) {
          const name = from * (width + 1) + x;
          const edge = found.get(name);
          if (edge) edge.bottom = y + 1;
          else found.set(name, { left: from, right: x, top: y, bottom: y + 1 });
        }
        from = -1;
      }
    }
  }
  return [...found.values()];
}

/** Returns the outline of the mark with a number in pixels; `null` if it is not found. */
export function markBox(pixels: Uint8ClampedArray, width: number, height: number, shown: number): Box | null {
  if (!Number.isInteger(shown) || shown < 1) return null;
  const outlines = edges(pixels, width, height, markColour(shown)).filter(({ top, bottom }) => bottom - top > 6);
  let best: Edge | null = null;
  for (const edge of outlines) {
    if (!best || edge.right - edge.left > best.right - best.left) best = edge;
  }
  return best;
}

/** Finds a mark on a loaded image. Returns coordinates of the model's grid: thousandths of width and height. */
export function markOn(image: HTMLImageElement, id: string): Box | null {
  const { naturalWidth: width, naturalHeight: height } = image;
  if (width === 0 || height === 0 || width * height > 1e8 || !/^\d{1,6}$/.test(id)) return null;
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (!context) return null;
  context.drawImage(image, 0, 0);
  const box = markBox(context.getImageData(0, 0, width, height).data, width, height, Number(id));
  return box && { left: (box.left * 1000) / width, right: (box.right * 1000) / width, top: (box.top * 1000) / height, bottom: (box.bottom * 1000) / height };
}
