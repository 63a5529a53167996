// Filters and sorts the rows of the table. Pure functions; see filter.test.ts. Ten thousand rows take a few milliseconds, so
// the page does it itself and reacts to every keystroke.

import type { Table } from '../data/types';

export const CHOICES = ['outcome', 'class', 'domain', 'website', 'reward'] as const;
export type Choice = (typeof CHOICES)[number];
export const COLUMNS = ['key', 'task', 'outcome', 'reward', 'steps', 'difficulty', 'domain', 'website'] as const;
export type Column = (typeof COLUMNS)[number];

export interface Sort {
  column: Column;
  descending: boolean;
}

export interface Filters {
  text: string;
  choices: Partial<Record<Choice, string>>;
  sort: Sort;
}

const DEFAULT_SORT: Sort = { column: 'key', descending: false };

export function filtersOf(query: URLSearchParams): Filters {
  const choices: Filters['choices'] = {};
  for (const name of CHOICES) {
    const value = query.get(name);
    if (value !== null) choices[name] = value;
  }
  const sort = query.get('sort') ?? '';
  const column = COLUMNS.find((name) => name === sort.replace(/^-/, ''));
  return { text: query.get('q') ?? '', choices, sort: column ? { column, descending: sort.startsWith('-') } : DEFAULT_SORT };
}

/** Returns the query parameter of a sort order; `null` for the default order. */
export function sortParameter({ column, descending }: Sort): string | null {
  return column === DEFAULT_SORT.column && !descending ? null : `${descending ? '-' : ''}${column}`;
}

/** Returns the value of a row in the column of a choice. */
export function valueOf(table: Table, choice: Choice, row: number): string {
  if (choice === 'reward') return String(table.reward[row] ?? 0);
  const names = table[choice];
  return names.values[names.rows[row] ?? 0] ?? '';
}

/** Returns the values of a choice and their counts, the most frequent first. */
export function options(table: Table, choice: Choice): [string, number][] {
  const counts = new Map<string, number>();
  for (let row = 0; row < table.key.length; row += 1) {
    const value = valueOf(table, choice, row);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

const searchTexts = new WeakMap<Table, string[]>();

function searchTextsOf(table: Table): string[] {
  let texts = searchTexts.get(table);
  if (!texts) {
    texts = table.task.map((task, row) => `${task}\n${valueOf(table, 'website', row)}\n${table.task_id[row] ?? ''}\n#${table.key[row]}`.toLowerCase());
    searchTexts.set(table, texts);
  }
  return texts;
}

/** Returns the rows that match the filters, sorted. Every word of the search text must occur in a row. */
export function rows(table: Table, { text, choices, sort }: Filters): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = words.length > 0 ? searchTextsOf(table) : [];
  const wanted = CHOICES.filter((choice) => choices[choice] !== undefined);
  const matching: number[] = [];
  for (let row = 0; row < table.key.length; row += 1) {
    const matches = wanted.every((choice) => valueOf(table, choice, row) === choices[choice])
      && words.every((word) => texts[row]?.includes(word));
    if (matches) matching.push(row);
  }
  const compare = comparison(table, sort.column);
  const sign = sort.descending ? -1 : 1;
  // Equal rows keep the order of the iteration.
  return sort.column === 'key' ? (sort.descending ? matching.reverse() : matching) : matching.sort((a, b) => sign * compare(a, b) || a - b);
}

function comparison(table: Table, column: Column): (a: number, b: number) => number {
  switch (column) {
    case 'key': return (a, b) => a - b;
    case 'task': return (a, b) => (table.task[a] ?? '').localeCompare(table.task[b] ?? '');
    case 'reward': case 'steps': case 'difficulty': {
      const numbers = table[column];
      return (a, b) => (numbers[a] ?? 0) - (numbers[b] ?? 0);
    }
    default: {
      // Few names occur in many rows: sort the names once.
      const names = table[column];
      const order = names.values.map((name, number) => [name, number] as const).sort((a, b) => a[0].localeCompare(b[0]));
      const rank: number[] = [];
      order.forEach(([, number], position) => { rank[number] = position; });
      return (a, b) => (rank[names.rows[a] ?? 0] ?? 0) - (rank[names.rows[b] ?? 0] ?? 0);
    }
  }
}
