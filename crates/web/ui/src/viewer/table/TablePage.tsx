import { useMemo, useState } from 'preact/hooks';
import { count } from '../../common/format';
import { useKeys } from '../../common/keys';
import { changed } from '../data/route';
import type { IterationId } from '../data/types';
import { go } from '../data/useLocation';
import { ago } from '../data/labels';
import { ErrorNotice, Loading } from '../Notice';
import { filtersOf, rows, sortParameter } from './filter';
import { FilterBar } from './FilterBar';
import { Rows } from './Rows';
import { useTable } from './useTable';

export function TablePage({ id, query }: { id: IterationId; query: URLSearchParams }) {
  const { split, iteration } = id;
  const { value: table, error } = useTable(id);
  const [marked, setMarked] = useState(-1);
  const search = query.toString();
  const filters = useMemo(() => filtersOf(query), [search]);
  const order = useMemo(() => (table ? rows(table, filters) : []), [table, filters]);
  const change = (changes: Record<string, string | null>) => {
    setMarked(-1);
    go({ page: 'table', split, iteration }, changed(query, changes), true);
  };
  useKeys((event) => {
    if (event.key === 'j') setMarked((now) => Math.min(order.length - 1, now + 1));
    else if (event.key === 'k') setMarked((now) => Math.max(0, now - 1));
    else if (event.key === 'u' || event.key === 'Escape') go({ page: 'iterations' });
    else if (event.key === 'Enter' && table && marked >= 0 && !(event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement)) {
      const key = table.key[order[marked] ?? -1];
      if (key !== undefined) go({ page: 'trajectory', split, iteration, key }, query);
    } else return false;
    return true;
  });
  if (!table) return error ? <ErrorNotice text={error} /> : <Loading what={`${split} iteration ${iteration}`} />;
  return (
    <>
      <div class="heading">
        <h2>{split} iteration {iteration}</h2>
        {!table.is_finished && (
          <span class="badge warn">
            unfinished{table.announced !== null && `: ${count(table.key.length)} of ${count(table.announced)} started`} · last change {ago(table.changed)}
          </span>
        )}
      </div>
      {error && <ErrorNotice title="Cannot refresh:" text={error} />}
      {table.problems.map((problem) => <ErrorNotice key={problem} title="Cannot be read:" text={problem} />)}
      <FilterBar table={table} filters={filters} shown={order.length} change={change} />
      <Rows table={table} order={order} sort={filters.sort} marked={marked} query={query}
        sortBy={(sort) => change({ sort: sortParameter(sort) })} />
    </>
  );
}
