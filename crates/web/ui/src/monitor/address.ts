import { KINDS, type Difficulty, type Kind } from './cells';
import { NO_FILTER, type Filter } from './filters';

/** What the page shows: the filter, the open task (-1 for none), and grid or table. */
export interface ViewState { filter: Filter; selected: number; table: boolean }

/** Reads the view from the URL fragment, so that a link to it can be shared. */
export function parseHash(hash: string): ViewState {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const kinds = (values.get('state') ?? '').split(',').filter((kind): kind is Kind => (KINDS as readonly string[]).includes(kind));
  const difficulty = values.get('difficulty') ?? '';
  const task = values.get('task') ?? '';
  return {
    filter: {
      ...NO_FILTER, kinds, domain: values.get('domain') ?? '', text: values.get('words') ?? '',
      difficulty: ['easy', 'medium', 'hard'].includes(difficulty) ? (difficulty as Difficulty) : '',
    },
    selected: /^\d{1,9}$/.test(task) ? Number(task) : -1,
    table: values.get('as') === 'table',
  };
}

export function formatHash({ filter, selected, table }: ViewState): string {
  const values = new URLSearchParams();
  if (filter.kinds.length) values.set('state', filter.kinds.join(','));
  if (filter.domain) values.set('domain', filter.domain);
  if (filter.difficulty) values.set('difficulty', filter.difficulty);
  if (filter.text) values.set('words', filter.text);
  if (table) values.set('as', 'table');
  if (selected >= 0) values.set('task', String(selected));
  return values.size ? `#${values}` : '';
}
