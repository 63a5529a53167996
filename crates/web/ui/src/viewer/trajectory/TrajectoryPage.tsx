import { useMemo } from 'preact/hooks';
import { useKeys } from '../../common/keys';
import { trajectoryAt, useLoaded } from '../data/api';
import { changed, link, parse, type TrajectoryId } from '../data/route';
import { go } from '../data/useLocation';
import { ComparePicker } from '../compare/ComparePicker';
import { filtersOf, rows } from '../table/filter';
import { useTable } from '../table/useTable';
import { ErrorNotice, Loading } from '../Notice';
import { RecordingPlayer } from './RecordingPlayer';
import { StepView } from './StepView';
import { StepPanel } from './StepPanel';
import { Strip } from './Strip';
import { TaskHead } from './TaskHead';
import { total } from './timings';
import { stepNow, stepOf, usePreload } from './useSteps';
import { Verdict } from './Verdict';

/** Returns the keys of the trajectories that match the filters, and the position of this one among them. */
function useNeighbours(id: TrajectoryId, query: URLSearchParams) {
  const { value: table } = useTable(id);
  const search = changed(query, { step: null }).toString();
  const order = useMemo(() => (table ? rows(table, filtersOf(new URLSearchParams(search))) : []), [table, search]);
  const keys = useMemo(() => order.map((row) => table?.key[row] ?? ''), [order]);
  return { keys, position: keys.indexOf(id.key) };
}

export function TrajectoryPage({ id, query }: { id: TrajectoryId; query: URLSearchParams }) {
  const { split, iteration, key } = id;
  const name = `${split}/${iteration}/${key}`;
  const { value, error } = useLoaded(name, (signal) => trajectoryAt(id, signal), (found) => (found.is_running ? 3 : null));
  const { keys, position } = useNeighbours(id, query);
  const steps = value?.steps.length ?? 0;
  const step = stepOf(query, steps);
  usePreload(id, value, step);
  const up = link({ page: 'table', split, iteration }, changed(query, { step: null }));
  const choose = (number: number) => {
    const target = Math.max(0, Math.min(steps - 1, number));
    go({ page: 'trajectory', split, iteration, key }, changed(query, { step: target === 0 ? null : String(target + 1) }), true);
  };
  const moveBy = (by: number) => {
    // Start from the current URL, because keys can be pressed faster than the page renders.
    const { route } = parse(location.hash);
    const from = route.page === 'trajectory' ? keys.indexOf(route.key) : position;
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
      case 'j': moveBy(1); return true;
      case 'k': moveBy(-1); return true;
      case 'u': case 'Escape': location.hash = up; return true;
      default: return false;
    }
  });
  const current = value?.steps[step];
  const longest = Math.max(1, ...(value?.steps.map(total) ?? []));
  return (
    <>
      <div class="heading">
        <nav class="crumbs" aria-label="Breadcrumb">
          <a href={up}>{split} iteration {iteration}</a> <span aria-hidden="true">›</span> <span>trajectory {key}</span>
        </nav>
        <span class="grow" />
        {keys.length > 0 && <span class="muted small number">{position < 0 ? '–' : position + 1} of {keys.length}</span>}
        <button type="button" disabled={position <= 0} onClick={() => moveBy(-1)}>Previous <kbd>k</kbd></button>
        <button type="button" disabled={position + 1 >= keys.length} onClick={() => moveBy(1)}>Next <kbd>j</kbd></button>
        <ComparePicker id={id} />
      </div>
      {error && <ErrorNotice text={error} />}
      {!value && !error && <Loading what="the trajectory" />}
      {value && (
        <>
          <TaskHead trajectory={value} />
          {value.steps.length === 0 && <p class="card">This trajectory has no steps{value.is_running ? ' yet' : ''}.</p>}
          {value.steps.length > 0 && <Strip id={id} steps={value.steps} current={step} choose={choose} />}
          {current && (
            <div class="timeline">
              <div>
                <div class="stepper">
                  <button type="button" onClick={() => choose(step - 1)} disabled={step === 0}><span aria-hidden="true">←</span> Previous step</button>
                  <h3 aria-live="polite">Step {step + 1} <span class="muted">of {value.steps.length}</span></h3>
                  <button type="button" onClick={() => choose(step + 1)} disabled={step + 1 >= value.steps.length}>Next step <span aria-hidden="true">→</span></button>
                </div>
                <StepView id={id} step={current} number={step} />
              </div>
              <StepPanel key={step} step={current} longest={longest} />
            </div>
          )}
          {value.has_recording && <RecordingPlayer key={name} id={id} step={step} />}
          <Verdict trajectory={value} />
        </>
      )}
    </>
  );
}
