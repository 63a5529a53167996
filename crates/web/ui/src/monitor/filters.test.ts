import { describe, expect, it } from 'vitest';
import { countKinds, EVERYTHING, visible } from './filters';
import type { Tasks } from './store';

const codes = Uint16Array.from([0, 6 | (1 << 7), 11 | (1 << 4), 12]);
const tasks: Tasks = {
  run: 'r', about: { name: '', split: '', iteration: 0, model: '', judge: '', version: '' },
  index: [0, 1, 2, 3], id: ['a', 'b', 'c', 'd'], name: ['Find a lamp', 'Count jobs', 'Buy', '<b>'], difficulty: [1, 5, 9, 2],
  domain: { names: ['shop', 'jobs'], of: [0, 1, 0, 1] }, website: { names: ['http://x/'], of: [0, 0, 0, 0] },
};

describe('filters', () => {
  const places = (filter: Partial<typeof EVERYTHING>) => visible({ ...EVERYTHING, ...filter }, codes, tasks);
  it('let everything through, or what they say', () => {
    expect(places({})).toEqual([0, 1, 2, 3]);
    expect(places({ kinds: ['policy', 'lost'] })).toEqual([1, 3]);
    expect(places({ domain: 'shop' })).toEqual([0, 2]);
    expect(places({ domain: 'nowhere' })).toEqual([]);
    expect(places({ difficulty: 'easy' })).toEqual([0, 3]);
    expect(places({ words: 'LAMP' })).toEqual([0]);
    expect(places({ domain: 'jobs', difficulty: 'medium', kinds: ['policy'] })).toEqual([1]);
  });
  it('count kinds', () => {
    expect(countKinds(codes)).toEqual(new Map([['idle', 1], ['policy', 1], ['success', 1], ['lost', 1]]));
  });
});
