import { colour } from '../common/theme';
import { KINDS, kindOf, cellText, type Kind } from './cells';
import type { Geometry } from './geometry';

/** Smallest cell size at which letters are drawn. */
const MIN_LETTER_SIZE = 15;

interface CellColours { fill: string; text: string }

/** Paints the grid. Each distinct cell with letters is drawn once and then copied, because drawing text is slow. */
export class Painter {
  private colours = new Map<Kind, CellColours>();
  private sprites = new Map<string, HTMLCanvasElement>();
  private spriteSize = 0;
  private ring = '';
  /** The colours of the kinds as pixels of an image, in the order of KINDS. */
  private pixels: number[] = [];
  private readonly small = document.createElement('canvas');

  /** Reads the current colours from the style sheet. */
  loadColours(): void {
    for (const kind of KINDS) this.colours.set(kind, { fill: colour(`--cell-${kind}`), text: colour(`--ink-${kind}`) });
    this.ring = colour('--text');
    this.pixels = KINDS.map((kind) => pixel(this.colours.get(kind)?.fill ?? ''));
    this.sprites.clear();
  }

  paint(context: CanvasRenderingContext2D, view: View): void {
    const { geometry, width, height, top } = view;
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const from = Math.floor(top / geometry.size) * geometry.columns;
    const to = Math.min(view.positions.length, (Math.floor((top + height) / geometry.size) + 1) * geometry.columns);
    if (geometry.size >= MIN_LETTER_SIZE) this.letters(context, view, from, to);
    else this.squares(context, view, from, to);
    this.outline(context, view, view.selected, 3);
    if (view.focused) this.outline(context, view, view.cursor, 2);
  }

  /** Paints cells that are too small for letters: an image with one pixel per cell is scaled up, and the gaps are cleared. The
   *  cost hardly depends on the number of cells. */
  private squares(context: CanvasRenderingContext2D, view: View, from: number, to: number): void {
    const { size, gap, columns } = view.geometry;
    const rows = Math.ceil((to - from) / columns);
    if (rows <= 0) return;
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let number = from; number < to; number++) {
      pixels[number - from] = this.pixels[kindNumber(view.codes[view.positions[number] ?? 0] ?? 0)] ?? 0;
    }
    this.small.width = columns;
    this.small.height = rows;
    this.small.getContext('2d')?.putImageData(image, 0, 0);
    const [left, top] = corner(view, from);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.small, left, top, columns * size, rows * size);
    for (let column = 1; column <= columns; column++) context.clearRect(left + column * size - gap, top, gap, rows * size);
    for (let row = 1; row <= rows; row++) context.clearRect(left, top + row * size - gap, columns * size, gap);
  }

  private letters(context: CanvasRenderingContext2D, view: View, from: number, to: number): void {
    for (let number = from; number < to; number++) {
      const code = view.codes[view.positions[number] ?? 0] ?? 0;
      const [x, y] = corner(view, number);
      context.drawImage(this.sprite(code, view.geometry), x, y, view.geometry.size, view.geometry.size);
    }
  }

  private sprite(code: number, { size, gap }: Geometry): HTMLCanvasElement {
    if (this.spriteSize !== size) this.sprites.clear();
    this.spriteSize = size;
    const kind = kindOf(code);
    const whole = cellText(code);
    const text = size < 24 && whole.length > 1 ? whole.slice(-1) : whole;
    const key = `${kind} ${text}`;
    const known = this.sprites.get(key);
    if (known) return known;
    const sprite = this.draw(text, this.colours.get(kind) ?? { fill: '#888', text: '#000' }, size, gap);
    this.sprites.set(key, sprite);
    return sprite;
  }

  private draw(text: string, colours: CellColours, size: number, gap: number): HTMLCanvasElement {
    const ratio = devicePixelRatio || 1;
    const sprite = document.createElement('canvas');
    sprite.width = sprite.height = Math.ceil(size * ratio);
    const context = sprite.getContext('2d');
    if (!context) return sprite;
    context.scale(ratio, ratio);
    context.fillStyle = colours.fill;
    context.beginPath();
    context.roundRect(0, 0, size - gap, size - gap, Math.min(5, size / 7));
    context.fill();
    context.fillStyle = colours.text;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const scale = text.length > 2 ? 0.36 : text.length > 1 ? 0.42 : 0.48;
    context.font = `600 ${Math.max(9, Math.round(Math.min(size, 48) * scale))}px system-ui, 'Liberation Sans', sans-serif`;
    context.fillText(text, (size - gap) / 2, (size - gap) / 2 + 0.5);
    return sprite;
  }

  private outline(context: CanvasRenderingContext2D, view: View, position: number, width: number): void {
    const number = position < 0 ? -1 : view.positions.indexOf(position);
    if (number < 0) return;
    const [x, y] = corner(view, number);
    const side = view.geometry.size - view.geometry.gap;
    context.strokeStyle = this.ring;
    context.lineWidth = width;
    context.strokeRect(x - 0.5, y - 0.5, side + 1, side + 1);
  }
}

const KIND_NUMBERS = new Map(KINDS.map((kind, number) => [kind, number]));
const kindNumber = (code: number): number => KIND_NUMBERS.get(kindOf(code)) ?? 0;

/** Converts `rgb(1, 2, 3)` to a pixel of image data on a little-endian machine. */
function pixel(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export interface View {
  codes: Uint16Array;
  positions: number[];
  geometry: Geometry;
  width: number;
  height: number;
  top: number;
  cursor: number;
  selected: number;
  focused: boolean;
}

function corner({ geometry, top }: View, number: number): [number, number] {
  return [(number % geometry.columns) * geometry.size + 1, Math.floor(number / geometry.columns) * geometry.size - top + 1];
}
