import { describe, expect, it } from 'vitest';
import type { Names, Table } from '../data/types';
import { filtersOf, options, rows, sortParameter } from './filter';

const names = (...texts: string[]): Names => {
  const values = [...new Set(texts)];
  return { values, rows: texts.map((text) => values.indexOf(text)) };
};

const table: Table = {
  split: 'train', iteration: 0, version: '', is_finished: true, announced: null, changed: 0, problems: [],
  key: ['0', '1', '2', '10'], task: ['Find the Price', 'book a flight', 'find a hotel', 'Read <b>'],
  task_id: [null, 7, 'trip-9', null], outcome: names('success', 'failure', 'failure', 'running'),
  domain: names('shop', 'travel', 'travel', 'shop'), subdomain: names('', '', '', ''),
  website: names('https://b.example', 'https://a.example', 'https://a.example', 'https://c.example'),
  class: names('easy', 'hard', 'medium', 'easy'), difficulty: [1, 8, 5, 2], reward: [1, 0, 0, 0],
  steps: [3, 9, 9, 1], max_steps: [10, 10, 10, 10], crashed: [false, false, false, false],
};
const shown = (search: string) => rows(table, filtersOf(new URLSearchParams(search))).map((row) => table.key[row]);

describe('filters', () => {
  it('match everything by default', () => expect(shown('')).toEqual(['0', '1', '2', '10']));
  it('combine all choices', () => {
    expect(shown('domain=travel')).toEqual(['1', '2']);
    expect(shown('domain=travel&class=hard')).toEqual(['1']);
    expect(shown('reward=1')).toEqual(['0']);
    expect(shown('outcome=running')).toEqual(['10']);
    expect(shown('website=https%3A%2F%2Fa.example&outcome=success')).toEqual([]);
  });
  it('search task, website, id and number', () => {
    expect(shown('q=FIND')).toEqual(['0', '2']);
    expect(shown('q=find hotel')).toEqual(['2']);
    expect(shown('q=trip-9')).toEqual(['2']);
    expect(shown('q=%2310')).toEqual(['10']);
    expect(shown('q=<b>')).toEqual(['10']);
    expect(shown('q=c.example')).toEqual(['10']);
  });
  it('sort both ways and are stable', () => {
    expect(shown('sort=steps')).toEqual(['10', '0', '1', '2']);
    expect(shown('sort=-steps')).toEqual(['1', '2', '0', '10']);
    expect(shown('sort=-key')).toEqual(['10', '2', '1', '0']);
    expect(shown('sort=website')).toEqual(['1', '2', '0', '10']);
    expect(shown('sort=nonsense')).toEqual(['0', '1', '2', '10']);
  });
  it('list the most frequent value first', () => expect(options(table, 'outcome')).toEqual([['failure', 2], ['running', 1], ['success', 1]]));
  it('omit the default sort order', () => {
    expect(sortParameter({ column: 'key', descending: false })).toBeNull();
    expect(sortParameter({ column: 'steps', descending: true })).toBe('-steps');
  });
});
