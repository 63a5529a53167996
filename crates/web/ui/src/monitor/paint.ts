import { colour } from '../common/theme';
import { KINDS, kindOf, textOf, type Kind } from './cells';
import type { Geometry } from './geometry';

/** From this size on a cell shows its letter. */
const LETTERS_FROM = 15;

interface Look { fill: string; ink: string }

/** Paints the grid. Cells with letters are drawn once each and then copied: text is what costs. */
export class Painter {
  private looks = new Map<Kind, Look>();
  private sprites = new Map<string, HTMLCanvasElement>();
  private spriteSize = 0;
  private ring = '';

  /** Takes the colours that are in effect now. */
  dress(): void {
    for (const kind of KINDS) this.looks.set(kind, { fill: colour(`--cell-${kind}`), ink: colour(`--ink-${kind}`) });
    this.ring = colour('--text');
    this.sprites.clear();
  }

  paint(context: CanvasRenderingContext2D, view: View): void {
    const { geometry, width, height, top } = view;
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const from = Math.floor(top / geometry.size) * geometry.columns;
    const to = Math.min(view.places.length, (Math.floor((top + height) / geometry.size) + 1) * geometry.columns);
    if (geometry.size >= LETTERS_FROM) this.letters(context, view, from, to);
    else this.squares(context, view, from, to);
    this.mark(context, view, view.selected, 3);
    if (view.focused) this.mark(context, view, view.cursor, 2);
  }

  private squares(context: CanvasRenderingContext2D, view: View, from: number, to: number): void {
    const { size, gap } = view.geometry;
    const byKind = new Map<Kind, number[]>();
    for (let number = from; number < to; number++) {
      const kind = kindOf(view.codes[view.places[number] ?? 0] ?? 0);
      const group = byKind.get(kind);
      if (group) group.push(number);
      else byKind.set(kind, [number]);
    }
    for (const [kind, numbers] of byKind) {
      context.fillStyle = this.looks.get(kind)?.fill ?? '';
      for (const number of numbers) {
        const [x, y] = corner(view, number);
        context.fillRect(x, y, size - gap, size - gap);
      }
    }
  }

  private letters(context: CanvasRenderingContext2D, view: View, from: number, to: number): void {
    for (let number = from; number < to; number++) {
      const code = view.codes[view.places[number] ?? 0] ?? 0;
      const [x, y] = corner(view, number);
      context.drawImage(this.sprite(code, view.geometry), x, y, view.geometry.size, view.geometry.size);
    }
  }

  private sprite(code: number, { size, gap }: Geometry): HTMLCanvasElement {
    if (this.spriteSize !== size) this.sprites.clear();
    this.spriteSize = size;
    const kind = kindOf(code);
    const whole = textOf(code);
    const text = size < 24 && whole.length > 1 ? whole.slice(-1) : whole;
    const key = `${kind} ${text}`;
    const known = this.sprites.get(key);
    if (known) return known;
    const sprite = this.draw(text, this.looks.get(kind) ?? { fill: '#888', ink: '#000' }, size, gap);
    this.sprites.set(key, sprite);
    return sprite;
  }

  private draw(text: string, look: Look, size: number, gap: number): HTMLCanvasElement {
    const ratio = devicePixelRatio || 1;
    const sprite = document.createElement('canvas');
    sprite.width = sprite.height = Math.ceil(size * ratio);
    const context = sprite.getContext('2d');
    if (!context) return sprite;
    context.scale(ratio, ratio);
    context.fillStyle = look.fill;
    context.beginPath();
    context.roundRect(0, 0, size - gap, size - gap, Math.min(5, size / 7));
    context.fill();
    context.fillStyle = look.ink;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    const scale = text.length > 2 ? 0.36 : text.length > 1 ? 0.42 : 0.48;
    context.font = `600 ${Math.max(9, Math.round(Math.min(size, 48) * scale))}px system-ui, 'Liberation Sans', sans-serif`;
    context.fillText(text, (size - gap) / 2, (size - gap) / 2 + 0.5);
    return sprite;
  }

  private mark(context: CanvasRenderingContext2D, view: View, place: number, wide: number): void {
    const number = place < 0 ? -1 : view.places.indexOf(place);
    if (number < 0) return;
    const [x, y] = corner(view, number);
    const side = view.geometry.size - view.geometry.gap;
    context.strokeStyle = this.ring;
    context.lineWidth = wide;
    context.strokeRect(x - 0.5, y - 0.5, side + 1, side + 1);
  }
}

export interface View {
  codes: Uint16Array;
  places: number[];
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
