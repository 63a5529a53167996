import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import { Brand } from '../common/Brand';
import { UntrustedText } from '../common/UntrustedText';
import { shorten } from '../common/format';
import { KeyboardHelp, useKeys } from '../common/keys';
import { ThemeToggle } from '../common/theme';
import { parseHash, formatHash, type ViewState } from './address';
import { describeCell } from './cells';
import { Coverage } from './Coverage';
import { Drawer } from './Drawer';
import { Farm } from './Farm';
import { FilterBar } from './FilterBar';
import { countKinds, visible } from './filters';
import { Grid } from './Grid';
import { Headline } from './Headline';
import { Operations } from './Operations';
import { Queues } from './Queues';
import { StatusBadge } from './StatusBadge';
import type { Store } from './store';
import { TaskTable } from './TaskTable';

const KEYS = [
  { keys: ['←', '→', '↑', '↓'], description: 'move between cells (when the grid has the focus)' },
  { keys: ['Enter'], description: 'open the task of the selected cell' },
  { keys: ['Esc'], description: 'close the task' },
  { keys: ['g'], description: 'go to the grid' },
  { keys: ['v'], description: 'switch between grid and table' },
  { keys: ['+', '-'], description: 'make cells larger or smaller' },
];

export function App({ store }: { store: Store }) {
  const [version, update] = useReducer((before: number) => before + 1, 0);
  const [view, setView] = useState<ViewState>(() => parseHash(location.hash));
  const [zoom, setZoom] = useState(1);
  const focusBefore = useRef<HTMLElement | null>(null);
  useEffect(() => store.listen(() => update(undefined)), [store]);
  useEffect(() => history.replaceState(null, '', `${location.pathname}${location.search}${formatHash(view)}`), [view]);
  const { codes, tasks, statistics } = store;
  const positions = useMemo(() => visible(view.filter, codes, tasks), [view.filter, codes, tasks, version]);
  const counts = useMemo(() => countKinds(codes), [codes, version]);
  const domains = useMemo(() => [...(tasks?.domain.names ?? [])].filter(Boolean).sort(), [tasks]);
  const open = (selected: number) => {
    if (view.selected < 0) focusBefore.current = document.activeElement as HTMLElement | null;
    setView({ ...view, selected });
  };
  const close = () => {
    setView({ ...view, selected: -1 });
    focusBefore.current?.focus();
  };
  const resize = (by: number) => setZoom((before) => Math.min(6, Math.max(0.5, before * by)));
  useKeys((event) => {
    if (event.key === 'g') document.querySelector<HTMLElement>('.grid-box')?.focus();
    else if (event.key === 'v') setView({ ...view, table: !view.table });
    else if (event.key === '+' || event.key === '=') resize(1.25);
    else if (event.key === '-') resize(0.8);
    else if (event.key === 'Escape' && view.selected >= 0) close();
    else return false;
    return true;
  });
  const describe = (position: number) =>
    `Task ${tasks?.index[position] ?? position}: ${describeCell(codes[position] ?? 0)} · ${tasks?.domain.names[tasks.domain.of[position] ?? -1] ?? ''} · ${shorten(tasks?.name[position] ?? '', 110)}`;

  return (
    <>
      <header class="topbar">
        <Brand page="monitor" />
        {tasks && <span class="run small"><UntrustedText text={tasks.about.name} /> <span class="muted">· {tasks.about.split}{tasks.about.iteration !== null && ` iteration ${tasks.about.iteration}`} · <UntrustedText text={tasks.about.model} /></span></span>}
        <StatusBadge status={store.status} />
        <span class="grow" />
        {tasks?.has_loop && <a class="button loop-link" href="./loop">Training loop</a>}
        <KeyboardHelp keys={KEYS} />
        <ThemeToggle />
      </header>
      {statistics?.hold && <p class="notice stall" role="status">Waiting: {statistics.hold}</p>}
      {statistics?.diagnosis && <p class="notice stall" role="status">No progress for {Math.round(statistics.stalled)} s: {statistics.diagnosis}</p>}
      {statistics ? (
        <main class={view.selected >= 0 ? 'monitor with-drawer' : 'monitor'}>
          <Headline statistics={statistics} history={store.history} />
          <section class="card tasks" aria-label="Tasks">
            <FilterBar filter={view.filter} counts={counts} domains={domains} set={(filter) => setView({ ...view, filter })}>
              <div class="views">
                <button type="button" aria-pressed={!view.table} onClick={() => setView({ ...view, table: false })}>Grid</button>
                <button type="button" aria-pressed={view.table} onClick={() => setView({ ...view, table: true })}>Table</button>
                {!view.table && <><button type="button" aria-label="Smaller cells" onClick={() => resize(0.8)}>−</button><button type="button" aria-label="Larger cells" onClick={() => resize(1.25)}>+</button></>}
              </div>
            </FilterBar>
            {view.table
              ? <TaskTable codes={codes} positions={positions} tasks={tasks} open={open} />
              : <Grid codes={codes} positions={positions} version={version} zoom={zoom} selected={view.selected} describe={describe} open={open} />}
          </section>
          <div class="side">
            <Operations statistics={statistics} />
            <Coverage sites={statistics.coverage} />
            <div class="side-pair">
              <Queues statistics={statistics} />
              <Farm nodes={statistics.nodes} />
            </div>
          </div>
        </main>
      ) : <main class="monitor"><p class="muted">{store.status === 'lost' ? 'The run does not respond. Retrying every few seconds.' : 'Connecting…'}</p></main>}
      {view.selected >= 0 && view.selected < codes.length && <Drawer position={view.selected} code={codes[view.selected] ?? 0} close={close} />}
    </>
  );
}
