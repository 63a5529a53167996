// What to draw for an action on the screenshot of its step. Pure functions; see overlay.test.ts. Positions are in the model's
// grid of 1000 × 1000: thousandths of width and height.

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
  /** The mark that the action refers to, and its line in the accessibility tree. */
  element: { id: string; text: string } | null;
  /** The text that was typed, or the URL that was opened. */
  text: string | null;
}

const NOTHING: Overlay = { point: null, box: null, scroll: null, element: null, text: null };
const MIDDLE: Point = { x: 500, y: 500 };

/** Extracts all numbers from a coordinate in any format that models use: `[x, y]`, `{"x":…,"y":…}`, `"(12, 30)"`. */
function numbers(value: Json | undefined): number[] {
  if (typeof value === 'number') return Number.isFinite(value) ? [value] : [];
  if (typeof value === 'string') return (value.match(/-?\d+(\.\d+)?/g) ?? []).map(Number);
  if (Array.isArray(value)) return value.flatMap(numbers);
  if (value && typeof value === 'object') return Object.values(value).flatMap(numbers);
  return [];
}

const clamp = (value: number): number => Math.min(1000, Math.max(0, value));

function target(action: Action): Pick<Overlay, 'point' | 'box'> {
  const [a, b, c, d, ...more] = numbers(action.arguments['coordinates'] ?? action.arguments['coordinate']).map(clamp);
  if (a === undefined || b === undefined || more.length > 0) return { point: null, box: null };
  if (c === undefined) return { point: { x: a, y: b }, box: null };
  if (d === undefined) return { point: null, box: null };
  const box = { left: Math.min(a, c), top: Math.min(b, d), right: Math.max(a, c), bottom: Math.max(b, d) };
  return { point: { x: (a + c) / 2, y: (b + d) / 2 }, box };
}

function direction(value: Json | undefined): Direction {
  return value === 'up' || value === 'left' || value === 'right' ? value : 'down';
}

/** Returns the text of a mark from its line in the accessibility tree: `id: 12, text: Search, tag: input, type=search`. */
export function elementText(tree: string | null, id: string): string {
  const line = tree?.split('\n').find((line) => line.startsWith(`id: ${id},`)) ?? '';
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
  const found: Overlay = { ...NOTHING, ...target(action), element: element(action, tree) };
  switch (action.key) {
    case 'scroll': case 'hover_and_scroll':
      return { ...found, scroll: { at: found.point ?? MIDDLE, direction: direction(action.arguments['direction']) }, point: null };
    case 'type': return { ...found, text: written(action.arguments['content'] ?? action.arguments['text']) };
    case 'navigate': return { ...found, text: written(action.arguments['url']) };
    default: return found;
  }
}

/** Describes the action in a few words, for the caption and for screen readers. */
export function describe(action: Action | null, shown: Overlay): string {
  if (!action) return 'no action recorded';
  const at = shown.element ? ` [${shown.element.id}]` : shown.point ? ` at ${Math.round(shown.point.x)}, ${Math.round(shown.point.y)}` : '';
  switch (action.key) {
    case 'click': return `click${at}`;
    case 'hover': return `hover${at}`;
    case 'type': return `type${at}`;
    case 'scroll': case 'hover_and_scroll': return `scroll ${shown.scroll?.direction ?? ''}${at}`;
    case 'goback': return 'go back';
    case 'tabandenter': return 'Tab and Enter';
    case 'invalid_step': return 'the episode ended unexpectedly';
    case 'invalid_url': return 'invalid URL';
    default: return action.key;
  }
}
