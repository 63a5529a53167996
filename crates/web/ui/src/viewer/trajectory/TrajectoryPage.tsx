import { useMemo } from 'preact/hooks';
import { useKeys } from '../../common/keys';
import { trajectoryAt, useLoaded } from '../data/api';
import { changed, link, parse, type Where } from '../data/route';
import { go } from '../data/useLocation';
import { ComparePicker } from '../compare/ComparePicker';
import { filtersOf, rows } from '../table/filter';
import { useTable } from '../table/useTable';
import { Trouble, Waiting } from '../Trouble';
import { Stage } from './Stage';
import { StepPanel } from './StepPanel';
import { Strip } from './Strip';
import { TaskHead } from './TaskHead';
import { total } from './timings';
import { stepNow, stepOf, usePreload } from './useSteps';
import { Verdict } from './Verdict';

/** The neighbours of a trajectory among those that the filters leave. */
function useNeighbours(where: Where, query: URLSearchParams) {
  const { value: table } = useTable(where);
  const search = changed(query, { step: null }).toString();
  const order = useMemo(() => (table ? rows(table, filtersOf(new URLSearchParams(search))) : []), [table, search]);
  const keys = useMemo(() => order.map((row) => table?.key[row] ?? ''), [order]);
  return { keys, at: keys.indexOf(where.key) };
}

export function TrajectoryPage({ where, query }: { where: Where; query: URLSearchParams }) {
  const { split, iteration, key } = where;
  const name = `${split}/${iteration}/${key}`;
  const { value, error } = useLoaded(name, (signal) => trajectoryAt(where, signal), (found) => (found.is_begun ? 3 : null));
  const { keys, at } = useNeighbours(where, query);
  const steps = value?.steps.length ?? 0;
  const step = stepOf(query, steps);
  usePreload(where, value, step);
  const up = link({ page: 'table', split, iteration }, changed(query, { step: null }));
  const choose = (number: number) => {
    const wanted = Math.max(0, Math.min(steps - 1, number));
    go({ page: 'trajectory', split, iteration, key }, changed(query, { step: wanted === 0 ? null : String(wanted + 1) }), true);
  };
  const turn = (by: number) => {
    // As with steps: from where the address is, not from what was drawn last.
    const { route } = parse(location.hash);
    const from = route.page === 'trajectory' ? keys.indexOf(route.key) : at;
    const to = keys[from + by];
    if (to !== undefined) go({ page: 'trajectory', split, iteration, key: to }, changed(query, { step: null }));
  };
  useKeys((event) => {
    if (document.querySelector('dialog[open]')) return false;
    switch (event.key) {
      case 'ArrowRight': choose(stepNow(steps) + 1); return true;
      case 'ArrowLeft': choose(stepNow(steps) - 1); return true;
      case 'Home': choose(0); return true;
      case 'End': choose(steps - 1); return true;
      case 'j': turn(1); return true;
      case 'k': turn(-1); return true;
      case 'u': case 'Escape': location.hash = up; return true;
      default: return false;
    }
  });
  const current = value?.steps[step];
  const longest = Math.max(1, ...(value?.steps.map(total) ?? []));
  return (
    <>
      <div class="heading">
        <nav class="crumbs" aria-label="Place">
          <a href={up}>{split} iteration {iteration}</a> <span aria-hidden="true">›</span> <span>trajectory {key}</span>
        </nav>
        <span class="grow" />
        {keys.length > 0 && <span class="muted small number">{at < 0 ? '–' : at + 1} of {keys.length}</span>}
        <button type="button" disabled={at <= 0} onClick={() => turn(-1)}>Previous <kbd>k</kbd></button>
        <button type="button" disabled={at + 1 >= keys.length} onClick={() => turn(1)}>Next <kbd>j</kbd></button>
        <ComparePicker where={where} />
      </div>
      {error && <Trouble text={error} />}
      {!value && !error && <Waiting what="the trajectory" />}
      {value && (
        <>
          <TaskHead trajectory={value} />
          {value.steps.length === 0 && <p class="card">It has no steps{value.is_begun ? ' yet' : ''}.</p>}
          {value.steps.length > 0 && <Strip where={where} steps={value.steps} current={step} choose={choose} />}
          {current && (
            <div class="timeline">
              <div>
                <div class="stepper">
                  <button type="button" onClick={() => choose(step - 1)} disabled={step === 0}><span aria-hidden="true">←</span> Back</button>
                  <h3 aria-live="polite">Step {step + 1} <span class="muted">of {value.steps.length}</span></h3>
                  <button type="button" onClick={() => choose(step + 1)} disabled={step + 1 >= value.steps.length}>On <span aria-hidden="true">→</span></button>
                </div>
                <Stage where={where} step={current} number={step} />
              </div>
              <StepPanel key={step} step={current} longest={longest} />
            </div>
          )}
          <Verdict trajectory={value} />
        </>
      )}
    </>
  );
}
