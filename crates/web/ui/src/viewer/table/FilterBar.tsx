import { useMemo, useRef } from 'preact/hooks';
import { count, host, shorten } from '../../common/format';
import { useKeys } from '../../common/keys';
import type { Table } from '../data/types';
import { outcomeLabel } from '../data/labels';
import { CHOICES, options, type Choice, type Filters } from './filter';

const LABELS: Record<Choice, string> = { outcome: 'Outcome', class: 'Difficulty', domain: 'Domain', website: 'Website', reward: 'Reward' };

/** Isolates untrusted text with two Unicode characters, because an option cannot contain markup. */
const isolated = (text: string): string => `\u2068${text}\u2069`;

function optionLabel(choice: Choice, value: string): string {
  if (choice === 'outcome') return outcomeLabel(value);
  if (choice === 'website') return isolated(shorten(host(value), 40));
  return value ? isolated(shorten(value, 40)) : '(none)';
}

interface Props {
  table: Table;
  filters: Filters;
  shown: number;
  change: (changes: Record<string, string | null>) => void;
}

export function FilterBar({ table, filters, shown, change }: Props) {
  const search = useRef<HTMLInputElement>(null);
  const choices = useMemo(() => CHOICES.map((choice) => ({ choice, values: options(table, choice) })), [table]);
  useKeys((event) => {
    if (event.key !== '/') return false;
    search.current?.focus();
    return true;
  });
  const noFilters: Record<string, null> = { q: null, outcome: null, class: null, domain: null, website: null, reward: null };
  const isFiltered = filters.text !== '' || Object.keys(filters.choices).length > 0;
  return (
    <search class="filters">
      <input
        ref={search} type="search" placeholder="Search tasks, websites, ids…" aria-label="Search tasks, websites and ids"
        value={filters.text} onInput={(event) => change({ q: event.currentTarget.value })}
        onKeyDown={(event) => { if (event.key === 'Escape') event.currentTarget.blur(); }}
      />
      {choices.map(({ choice, values }) => (
        <label key={choice}>
          <span class="visually-hidden">{LABELS[choice]}</span>
          <select value={filters.choices[choice] ?? ''} class={filters.choices[choice] === undefined ? '' : 'chosen'}
            onChange={(event) => change({ [choice]: event.currentTarget.value || null })}>
            <option value="">{LABELS[choice]}: all</option>
            {values.map(([value, number]) => <option key={value} value={value}>{optionLabel(choice, value)} ({count(number)})</option>)}
          </select>
        </label>
      ))}
      {isFiltered && <button type="button" onClick={() => change(noFilters)}>Clear</button>}
      <output class="muted number">{count(shown)} of {count(table.key.length)}</output>
    </search>
  );
}
