import { describe, expect, it } from 'vitest';
import { address } from './api';
import { duration, host, percent, rate, shorten } from './format';

describe('format', () => {
  it('formats durations', () => {
    expect([0.85, 4.21, 42.4, 185, 7620, 400_000, NaN, Infinity].map(duration)).toEqual(
      ['850 ms', '4.2 s', '42 s', '3 min 05 s', '2 h 07 min', '5 days', '–', '–']);
  });
  it('formats shares and rates', () => {
    expect([percent(1, 0), percent(1, 3), percent(1, 40), percent(0, 3)]).toEqual(['–', '33 %', '2.5 %', '0 %']);
    expect([rate(0.456), rate(12.34), rate(1234.5)]).toEqual(['0.46', '12.3', '1,235']);
  });
  it('does not split characters', () => {
    expect(shorten('💡💡💡💡', 3)).toBe('💡💡…');
    expect(shorten('short', 10)).toBe('short');
  });
  it('returns the host of a URL or the text', () => {
    expect([host('https://a.example:8/b'), host('javascript:alert(1)'), host('??')]).toEqual(['a.example:8', 'javascript:alert(1)', '??']);
  });
});

describe('address', () => {
  it('leaves out parameters without a value', () => {
    expect(address('api/rows', { a: 'x y', b: undefined, c: '', d: 0 })).toBe('api/rows?a=x+y&d=0');
    expect(address('api/rows')).toBe('api/rows');
  });
});
