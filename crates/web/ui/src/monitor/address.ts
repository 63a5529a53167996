import { KINDS, type Difficulty, type Kind } from './cells';
import { EVERYTHING, type Filter } from './filters';

export interface Shown { filter: Filter; selected: number; table: boolean }

/** What is shown, from the part of the address after `#`: such a link can be passed on. */
export function read(hash: string): Shown {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const kinds = (values.get('state') ?? '').split(',').filter((kind): kind is Kind => (KINDS as readonly string[]).includes(kind));
  const difficulty = values.get('difficulty') ?? '';
  const task = values.get('task') ?? '';
  return {
    filter: {
      ...EVERYTHING, kinds, domain: values.get('domain') ?? '', words: values.get('words') ?? '',
      difficulty: ['easy', 'medium', 'hard'].includes(difficulty) ? (difficulty as Difficulty) : '',
    },
    selected: /^\d{1,9}$/.test(task) ? Number(task) : -1,
    table: values.get('as') === 'table',
  };
}

export function write({ filter, selected, table }: Shown): string {
  const values = new URLSearchParams();
  if (filter.kinds.length) values.set('state', filter.kinds.join(','));
  if (filter.domain) values.set('domain', filter.domain);
  if (filter.difficulty) values.set('difficulty', filter.difficulty);
  if (filter.words) values.set('words', filter.words);
  if (table) values.set('as', 'table');
  if (selected >= 0) values.set('task', String(selected));
  return values.size ? `#${values}` : '';
}
