import { useEffect } from 'preact/hooks';
import { Brand } from '../common/Brand';
import { KeyboardHelp, type KeyHelp } from '../common/keys';
import { ThemeToggle } from '../common/theme';
import { ComparePage } from './compare/ComparePage';
import { link, type Route } from './data/route';
import { useLocation } from './data/useLocation';
import { IterationsPage } from './iterations/IterationsPage';
import { PlotsPage } from './plots/PlotsPage';
import { TablePage } from './table/TablePage';
import { TrajectoryPage } from './trajectory/TrajectoryPage';

const KEYS: KeyHelp[] = [
  { keys: ['←', '→'], does: 'The step before, the next step' },
  { keys: ['Home', 'End'], does: 'The first, the last step' },
  { keys: ['j', 'k'], does: 'The next trajectory, the one before: of those that the filters leave' },
  { keys: ['Enter'], does: 'In the table: open the marked trajectory' },
  { keys: ['/'], does: 'In the table: search' },
  { keys: ['u', 'Esc'], does: 'Up: to the table, to the iterations' },
  { keys: ['?'], does: 'This list' },
];

function title(route: Route): string {
  switch (route.page) {
    case 'iterations': return 'Iterations';
    case 'plots': return 'Plots';
    case 'table': return `${route.split} ${route.iteration}`;
    case 'trajectory': return `${route.split} ${route.iteration} · trajectory ${route.key}`;
    case 'compare': return `Compare ${route.left.key} and ${route.right.key}`;
  }
}

export function App() {
  const { route, query } = useLocation();
  const name = title(route);
  useEffect(() => {
    document.title = `${name} · webgym`;
  }, [name]);
  const on = (page: Route['page']) => (route.page === page ? 'page' : undefined);
  return (
    <>
      <header class="topbar">
        <Brand page="viewer" />
        <nav class="tabs" aria-label="Pages">
          <a href={link({ page: 'iterations' })} aria-current={on('iterations')}>Iterations</a>
          <a href={link({ page: 'plots' })} aria-current={on('plots')}>Plots</a>
        </nav>
        <span class="grow" />
        <KeyboardHelp keys={KEYS} />
        <ThemeToggle />
      </header>
      <main class={`page page-${route.page}`}>
        {route.page === 'iterations' && <IterationsPage />}
        {route.page === 'plots' && <PlotsPage query={query} />}
        {route.page === 'table' && <TablePage place={route} query={query} />}
        {route.page === 'trajectory' && <TrajectoryPage where={route} query={query} />}
        {route.page === 'compare' && <ComparePage left={route.left} right={route.right} query={query} />}
      </main>
    </>
  );
}
