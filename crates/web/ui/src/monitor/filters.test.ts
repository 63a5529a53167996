import { describe, expect, it } from 'vitest';
import { countKinds, NO_FILTER, visible } from './filters';
import type { Tasks } from './store';

const codes = Uint16Array.from([0, 6 | (1 << 7), 11 | (1 << 4), 12]);
const tasks: Tasks = {
  run: 'r', revision: 0, about: { name: '', split: '', iteration: 0, model: '', judge: '', version: '' },
  index: [0, 1, 2, 3], id: ['a', 'b', 'c', 'd'], name: ['Find a lamp', 'Count jobs', 'Buy', '<b>'], difficulty: [1, 5, 9, 2],
  domain: { names: ['shop', 'jobs'], of: [0, 1, 0, 1] }, website: { names: ['http://x/'], of: [0, 0, 0, 0] },
};

describe('filters', () => {
  const positions = (filter: Partial<typeof NO_FILTER>) => visible({ ...NO_FILTER, ...filter }, codes, tasks);
  it('return the matching positions', () => {
    expect(positions({})).toEqual([0, 1, 2, 3]);
    expect(positions({ kinds: ['policy', 'lost'] })).toEqual([1, 3]);
    expect(positions({ domain: 'shop' })).toEqual([0, 2]);
    expect(positions({ domain: 'nowhere' })).toEqual([]);
    expect(positions({ difficulty: 'easy' })).toEqual([0, 3]);
    expect(positions({ text: 'LAMP' })).toEqual([0]);
    expect(positions({ domain: 'jobs', difficulty: 'medium', kinds: ['policy'] })).toEqual([1]);
  });
  it('count kinds', () => {
    expect(countKinds(codes)).toEqual(new Map([['idle', 1], ['policy', 1], ['success', 1], ['lost', 1]]));
  });
});
