import { describe, expect, it } from 'vitest';
import { changed, link, parse, type Route } from './route';

describe('routes', () => {
  it('survive formatting and parsing', () => {
    const left = { split: 'train', iteration: 0, key: '7' } as const;
    const right = { split: 'test', iteration: 12, key: '-1~2' } as const;
    const routes: Route[] = [
      { page: 'iterations' }, { page: 'plots' }, { page: 'table', split: 'test', iteration: 3 },
      { page: 'trajectory', ...right }, { page: 'compare', left, right },
    ];
    for (const route of routes) {
      const query = new URLSearchParams({ q: 'a&b=#?', sort: '-steps' });
      const back = parse(link(route, query));
      expect(back.route).toEqual(route);
      expect(back.query.get('q')).toBe('a&b=#?');
    }
  });
  it('fall back to the iterations if unknown', () => {
    for (const hash of ['', '#', '#/nowhere', '#/train', '#/train/x', '#/train/1e3', '#/valid/1', '#/compare/train/0/1']) {
      expect(parse(hash).route.page).toBe('iterations');
    }
    expect(parse('#/train/0/..%2f..%2fetc').route).toEqual({ page: 'table', split: 'train', iteration: 0 });
  });
  it('leave out empty values', () => {
    expect(changed(new URLSearchParams('q=x&step=3'), { q: '', sort: 'steps', step: null }).toString()).toBe('sort=steps');
  });
});
