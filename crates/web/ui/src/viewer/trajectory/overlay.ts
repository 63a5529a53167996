// What an action looks like on the screenshot it was chosen from. Pure; see overlay.test.ts. The model's grid is a
// thousand by a thousand, so positions are told in thousandths of width and height.

import type { Action, Json } from '../data/types';

export interface Point {
  x: number;
  y: number;
}

export type Direction = 'up' | 'down' | 'left' | 'right';

export interface Overlay {
  point: Point | null;
  box: { left: number; top: number; right: number; bottom: number } | null;
  scroll: { at: Point; direction: Direction } | null;
  /** The mark on the screenshot that was meant, and what the page says it is. */
  element: { id: string; text: string } | null;
  /** Text that was typed, or the address that was opened. */
  text: string | null;
}

const NOTHING: Overlay = { point: null, box: null, scroll: null, element: null, text: null };
const MIDDLE: Point = { x: 500, y: 500 };

/** All numbers in whatever shape the model chose: `[x, y]`, `{"x":…,"y":…}`, `"(12, 30)"`. */
function numbers(value: Json | undefined): number[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [value] : [];
  if (typeof value === 'string') return (value.match(/-?\d+(\.\d+)?/g) ?? []).map(Number);
  if (Array.isArray(value)) return value.flatMap(numbers);
  if (value && typeof value === 'object') return Object.values(value).flatMap(numbers);
  return [];
}

const clamp = (value: number): number => Math.min(1000, Math.max(0, value));

function place(action: Action): Pick<Overlay, 'point' | 'box'> {
  const [a, b, c, d, ...more] = numbers(action.arguments['coordinate']).map(clamp);
  if (a === undefined || b === undefined || more.length > 0) return { point: null, box: null };
  if (c === undefined) return { point: { x: a, y: b }, box: null };
  if (d === undefined) return { point: null, box: null };
  const box = { left: Math.min(a, c), top: Math.min(b, d), right: Math.max(a, c), bottom: Math.max(b, d) };
  return { point: { x: (a + c) / 2, y: (b + d) / 2 }, box };
}

function direction(value: Json | undefined): Direction {
  return value === 'up' || value === 'left' || value === 'right' ? value : 'down';
}

/** The line of the accessibility text about one mark: `id: 12, text: Search, tag: input, type=search`. */
export function elementText(tree: string | null, id: string): string {
  const line = tree?.split('\n').find((one) => one.startsWith(`id: ${id},`)) ?? '';
  const text = line.slice(`id: ${id},`.length).trim();
  return text.startsWith('text: ') ? text.slice('text: '.length) : text;
}

function element(action: Action, tree: string | null): Overlay['element'] {
  const id = action.arguments['element_id'];
  if (typeof id !== 'string' && typeof id !== 'number') return null;
  return { id: String(id), text: elementText(tree, String(id)) };
}

const written = (value: Json | undefined): string | null => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : null);

export function overlay(action: Action | null, tree: string | null): Overlay {
  if (!action) return NOTHING;
  const found: Overlay = { ...NOTHING, ...place(action), element: element(action, tree) };
  switch (action.key) {
    case 'scroll': case 'hover_and_scroll':
      return { ...found, scroll: { at: found.point ?? MIDDLE, direction: direction(action.arguments['direction']) }, point: null };
    case 'type': return { ...found, text: written(action.arguments['text']) };
    case 'navigate': return { ...found, text: written(action.arguments['url']) };
    default: return found;
  }
}

/** A sentence about the action, for the caption and for those who do not see the picture. */
export function sentence(action: Action | null, shown: Overlay): string {
  if (!action) return 'no action was recorded';
  const at = shown.element ? ` [${shown.element.id}]` : shown.point ? ` at ${Math.round(shown.point.x)}, ${Math.round(shown.point.y)}` : '';
  switch (action.key) {
    case 'click': return `click${at}`;
    case 'hover': return `hover${at}`;
    case 'type': return `type${at}`;
    case 'scroll': case 'hover_and_scroll': return `scroll ${shown.scroll?.direction ?? ''}${at}`;
    case 'goback': return 'go back';
    case 'tabandenter': return 'Tab and Enter';
    case 'invalid_step': return 'the episode broke off here';
    case 'invalid_url': return 'the address is not one';
    default: return action.key;
  }
}
