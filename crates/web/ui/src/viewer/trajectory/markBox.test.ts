import { describe, expect, it } from 'vitest';
import { markBox, markColour, type Colour } from './markBox';

const [WIDTH, HEIGHT] = [120, 80];

function image(...areas: [Colour, number, number, number, number][]): Uint8ClampedArray {
  const pixels = new Uint8ClampedArray(WIDTH * HEIGHT * 4).fill(255);
  for (const [[red, green, blue], left, top, right, bottom] of areas) {
    for (let y = top; y < bottom; y += 1) for (let x = left; x < right; x += 1) pixels.set([red, green, blue, 255], (y * WIDTH + x) * 4);
  }
  return pixels;
}

/** A box two pixels thick, as the farm draws it. */
const outline = (colour: Colour, left: number, top: number, right: number, bottom: number): [Colour, number, number, number, number][] => [
  [colour, left, top, right, top + 2], [colour, left, bottom - 2, right, bottom],
  [colour, left, top, left + 2, bottom], [colour, right - 2, top, right, bottom],
];

describe('marks', () => {
  it('have the same colours as in the farm', () => {
    // The values of `Colour::of_mark` in Rust.
    expect([1, 2, 14].map(markColour)).toEqual([[22, 223, 81], [110, 17, 176], [17, 176, 31]]);
  });
  it('are found by their outline, not their label', () => {
    const pixels = image(...outline(markColour(14), 20, 30, 90, 50), [markColour(14), 90, 20, 104, 30], ...outline(markColour(3), 0, 0, 119, 79));
    expect(markBox(pixels, WIDTH, HEIGHT, 14)).toEqual({ left: 20, top: 30, right: 90, bottom: 50 });
  });
  it('are null if absent', () => {
    const pixels = image(...outline(markColour(14), 20, 30, 90, 50));
    for (const shown of [13, 0, -1, 1.5, NaN]) expect(markBox(pixels, WIDTH, HEIGHT, shown)).toBeNull();
    expect(markBox(image([markColour(14), 0, 0, 60, 2]), WIDTH, HEIGHT, 14)).toBeNull();
  });
});
