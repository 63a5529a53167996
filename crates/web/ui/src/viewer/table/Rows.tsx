import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { UntrustedText } from '../../common/UntrustedText';
import { host } from '../../common/format';
import { link } from '../data/route';
import type { Table } from '../data/types';
import { Outcome } from '../Outcome';
import type { Column, Sort } from './filter';

const HEADINGS: { column: Column; label: string; class?: string }[] = [
  { column: 'key', label: '#', class: 'narrow' },
  { column: 'task', label: 'Task', class: 'task' },
  { column: 'outcome', label: 'Outcome' },
  { column: 'reward', label: 'Reward', class: 'narrow' },
  { column: 'steps', label: 'Steps', class: 'narrow' },
  { column: 'difficulty', label: 'Difficulty' },
  { column: 'domain', label: 'Domain' },
  { column: 'website', label: 'Website' },
];
/** Rows that are rendered above and below the visible ones. */
const OVERSCAN = 8;

interface Props {
  table: Table;
  order: number[];
  sort: Sort;
  marked: number;
  query: URLSearchParams;
  sortBy: (sort: Sort) => void;
}

/** The table body. Renders only the visible rows; two empty rows take the space of those above and below. */
export function Rows({ table, order, sort, marked, query, sortBy }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(40);
  const [view, setView] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const measure = () => {
      const row = box.current?.querySelector<HTMLElement>('tbody tr[data-row]');
      if (row && row.offsetHeight > 0) setHeight(row.offsetHeight);
      if (box.current) setView({ top: box.current.scrollTop, height: box.current.clientHeight });
    };
    measure();
    addEventListener('resize', measure);
    return () => removeEventListener('resize', measure);
  }, [table]);
  useEffect(() => {
    const element = box.current;
    if (!element || marked < 0) return;
    const [top, bottom] = [marked * height, (marked + 1) * height];
    const space = element.clientHeight - height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + space) element.scrollTop = bottom - space;
  }, [marked]);
  const first = Math.max(0, Math.floor(view.top / height) - OVERSCAN);
  const last = Math.min(order.length, Math.ceil((view.top + view.height) / height) + OVERSCAN);
  const toggleSort = (column: Column) => sortBy({ column, descending: sort.column === column && !sort.descending });
  return (
    <div ref={box} class="rows" tabIndex={0} role="region" aria-label="Trajectories"
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}>
      <table aria-rowcount={order.length + 1}>
        <thead>
          <tr>
            {HEADINGS.map(({ column, label, class: name }) => (
              <th key={column} scope="col" class={name} aria-sort={sort.column !== column ? 'none' : sort.descending ? 'descending' : 'ascending'}>
                <button type="button" class="plain" onClick={() => toggleSort(column)}>
                  {label}<span aria-hidden="true" class="arrow">{sort.column === column ? (sort.descending ? '▼' : '▲') : ''}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr class="space" aria-hidden="true" style={{ height: `${first * height}px` }} />
          {order.slice(first, last).map((row, number) => (
            <Row key={table.key[row]} table={table} row={row} position={first + number} isMarked={first + number === marked} query={query} />
          ))}
          <tr class="space" aria-hidden="true" style={{ height: `${(order.length - last) * height}px` }} />
        </tbody>
      </table>
      {order.length === 0 && <p class="muted nothing">No trajectory matches these filters.</p>}
    </div>
  );
}

interface RowProps {
  table: Table;
  row: number;
  position: number;
  isMarked: boolean;
  query: URLSearchParams;
}

function Row({ table, row, position, isMarked, query }: RowProps) {
  const key = table.key[row] ?? '';
  const target = link({ page: 'trajectory', split: table.split, iteration: table.iteration, key }, query);
  const name = (column: 'outcome' | 'domain' | 'website' | 'class') => table[column].values[table[column].rows[row] ?? 0] ?? '';
  return (
    <tr data-row={key} aria-rowindex={position + 2} class={isMarked ? 'marked' : ''}>
      <td class="number narrow">{key}</td>
      <td class="task"><a href={target} title={table.task[row]}><UntrustedText text={table.task[row] || '(no task)'} /></a></td>
      <td><Outcome outcome={name('outcome')} />{table.crashed[row] && <span class="badge" title="Counts as crashed in the metrics">crashed</span>}</td>
      <td class="number narrow">{table.reward[row]}</td>
      <td class="number narrow">{table.steps[row]}<span class="muted"> / {table.max_steps[row]}</span></td>
      <td>{name('class')} <span class="muted number">{table.difficulty[row]}</span></td>
      <td><UntrustedText text={name('domain')} /></td>
      <td class="website" title={name('website')}><UntrustedText text={host(name('website'))} /></td>
    </tr>
  );
}
