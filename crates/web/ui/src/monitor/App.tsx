import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import { Brand } from '../common/Brand';
import { Foreign } from '../common/Foreign';
import { shorten } from '../common/format';
import { KeyboardHelp, useKeys } from '../common/keys';
import { ThemeToggle } from '../common/theme';
import { read, write, type Shown } from './address';
import { wordsOf } from './cells';
import { Drawer } from './Drawer';
import { Farm } from './Farm';
import { FilterBar } from './FilterBar';
import { countKinds, visible } from './filters';
import { Grid } from './Grid';
import { Headline } from './Headline';
import { Operations } from './Operations';
import { Queues } from './Queues';
import { StatusWord } from './StatusWord';
import type { Store } from './store';
import { TaskTable } from './TaskTable';

const KEYS = [
  { keys: ['←', '→', '↑', '↓'], does: 'move over the cells, when the grid has the focus' },
  { keys: ['Enter'], does: 'open the task of the cell' },
  { keys: ['Esc'], does: 'close the task' },
  { keys: ['g'], does: 'go to the grid' },
  { keys: ['v'], does: 'switch between grid and table' },
  { keys: ['+', '-'], does: 'larger and smaller cells' },
];

export function App({ store }: { store: Store }) {
  const [version, update] = useReducer((before: number) => before + 1, 0);
  const [shown, setShown] = useState<Shown>(() => read(location.hash));
  const [zoom, setZoom] = useState(1);
  const back = useRef<HTMLElement | null>(null);
  useEffect(() => store.listen(() => update(undefined)), [store]);
  useEffect(() => history.replaceState(null, '', `${location.pathname}${location.search}${write(shown)}`), [shown]);
  const { codes, tasks, figures } = store;
  const places = useMemo(() => visible(shown.filter, codes, tasks), [shown.filter, codes, tasks, version]);
  const counts = useMemo(() => countKinds(codes), [codes, version]);
  const domains = useMemo(() => [...(tasks?.domain.names ?? [])].filter(Boolean).sort(), [tasks]);
  const open = (selected: number) => {
    if (shown.selected < 0) back.current = document.activeElement as HTMLElement | null;
    setShown({ ...shown, selected });
  };
  const close = () => {
    setShown({ ...shown, selected: -1 });
    back.current?.focus();
  };
  const resize = (by: number) => setZoom((before) => Math.min(6, Math.max(0.5, before * by)));
  useKeys((event) => {
    if (event.key === 'g') document.querySelector<HTMLElement>('.grid-box')?.focus();
    else if (event.key === 'v') setShown({ ...shown, table: !shown.table });
    else if (event.key === '+' || event.key === '=') resize(1.25);
    else if (event.key === '-') resize(0.8);
    else if (event.key === 'Escape' && shown.selected >= 0) close();
    else return false;
    return true;
  });
  const describe = (place: number) =>
    `Task ${tasks?.index[place] ?? place}: ${wordsOf(codes[place] ?? 0)} · ${tasks?.domain.names[tasks.domain.of[place] ?? -1] ?? ''} · ${shorten(tasks?.name[place] ?? '', 110)}`;

  return (
    <>
      <header class="topbar">
        <Brand page="monitor" />
        {tasks && <span class="run small"><Foreign text={tasks.about.name} /> <span class="muted">· {tasks.about.split} iteration {tasks.about.iteration} · <Foreign text={tasks.about.model} /></span></span>}
        <StatusWord status={store.status} />
        <span class="grow" />
        <KeyboardHelp keys={KEYS} />
        <ThemeToggle />
      </header>
      {figures?.diagnosis && <p class="notice stall" role="status">Nothing has moved for {Math.round(figures.stalled)} s: {figures.diagnosis}</p>}
      {figures ? (
        <main class={shown.selected >= 0 ? 'monitor with-drawer' : 'monitor'}>
          <Headline figures={figures} history={store.history} />
          <section class="card tasks" aria-label="Tasks">
            <FilterBar filter={shown.filter} counts={counts} domains={domains} set={(filter) => setShown({ ...shown, filter })}>
              <div class="views">
                <button type="button" aria-pressed={!shown.table} onClick={() => setShown({ ...shown, table: false })}>Grid</button>
                <button type="button" aria-pressed={shown.table} onClick={() => setShown({ ...shown, table: true })}>Table</button>
                {!shown.table && <><button type="button" aria-label="Smaller cells" onClick={() => resize(0.8)}>−</button><button type="button" aria-label="Larger cells" onClick={() => resize(1.25)}>+</button></>}
              </div>
            </FilterBar>
            {shown.table
              ? <TaskTable codes={codes} places={places} tasks={tasks} open={open} />
              : <Grid codes={codes} places={places} version={version} zoom={zoom} selected={shown.selected} describe={describe} open={open} />}
          </section>
          <div class="side">
            <Operations figures={figures} />
            <div class="side-pair">
              <Queues figures={figures} />
              <Farm nodes={figures.nodes} />
            </div>
          </div>
        </main>
      ) : <main class="monitor"><p class="muted">{store.status === 'lost' ? 'The run does not answer. It is tried again every few seconds.' : 'Connecting…'}</p></main>}
      {shown.selected >= 0 && shown.selected < codes.length && <Drawer place={shown.selected} code={codes[shown.selected] ?? 0} close={close} />}
    </>
  );
}
