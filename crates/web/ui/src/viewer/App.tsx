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
  { keys: ['←', '→'], description: 'Previous or next step' },
  { keys: ['Home', 'End'], description: 'First or last step' },
  { keys: ['j', 'k'], description: 'Next or previous trajectory that matches the filters' },
  { keys: ['Enter'], description: 'In the table: open the selected trajectory' },
  { keys: ['/'], description: 'In the table: search' },
  { keys: ['u', 'Esc'], description: 'Up: from a trajectory to the table, from the table to the iterations' },
  { keys: ['?'], description: 'Show this list' },
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
  const current = (page: Route['page']) => (route.page === page ? 'page' : undefined);
  return (
    <>
      <header class="topbar">
        <Brand page="viewer" />
        <nav class="tabs" aria-label="Pages">
          <a href={link({ page: 'iterations' })} aria-current={current('iterations')}>Iterations</a>
          <a href={link({ page: 'plots' })} aria-current={current('plots')}>Plots</a>
        </nav>
        <span class="grow" />
        <KeyboardHelp keys={KEYS} />
        <ThemeToggle />
      </header>
      <main class={`page page-${route.page}`}>
        {route.page === 'iterations' && <IterationsPage />}
        {route.page === 'plots' && <PlotsPage query={query} />}
        {route.page === 'table' && <TablePage id={route} query={query} />}
        {route.page === 'trajectory' && <TrajectoryPage id={route} query={query} />}
        {route.page === 'compare' && <ComparePage left={route.left} right={route.right} query={query} />}
      </main>
    </>
  );
}
