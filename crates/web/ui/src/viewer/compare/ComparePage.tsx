import { UntrustedText } from '../../common/UntrustedText';
import { useKeys } from '../../common/keys';
import { siblingsOf, trajectoryAt, useLoaded } from '../data/api';
import { changed, link, type TrajectoryId } from '../data/route';
import { go } from '../data/useLocation';
import { stepNow, stepOf } from '../trajectory/useSteps';
import { ErrorNotice, Loading } from '../Notice';
import { addressOf } from './ComparePicker';
import { Side } from './Side';

/** Two trajectories of one task side by side; the arrow keys change the step of both. */
export function ComparePage({ left, right, query }: { left: TrajectoryId; right: TrajectoryId; query: URLSearchParams }) {
  const leftLoaded = useLoaded(addressOf(left), (signal) => trajectoryAt(left, signal));
  const rightLoaded = useLoaded(addressOf(right), (signal) => trajectoryAt(right, signal));
  const siblings = useLoaded(`siblings/${addressOf(left)}`, (signal) => siblingsOf(left, signal)).value ?? [];
  const steps = Math.max(leftLoaded.value?.steps.length ?? 0, rightLoaded.value?.steps.length ?? 0);
  const step = stepOf(query, steps);
  const choose = (number: number) => {
    const target = Math.max(0, Math.min(steps - 1, number));
    go({ page: 'compare', left, right }, changed(query, { step: target === 0 ? null : String(target + 1) }), true);
  };
  useKeys((event) => {
    switch (event.key) {
      case 'ArrowRight': choose(stepNow(steps) + 1); return true;
      case 'ArrowLeft': choose(stepNow(steps) - 1); return true;
      case 'Home': choose(0); return true;
      case 'End': choose(steps - 1); return true;
      case 'u': case 'Escape': go({ page: 'trajectory', ...left }); return true;
      default: return false;
    }
  });
  const error = leftLoaded.error ?? rightLoaded.error;
  const task = leftLoaded.value?.task.task_name;
  const isDifferentTask = task !== undefined && rightLoaded.value !== null && rightLoaded.value.task.task_name !== task;
  return (
    <>
      <div class="heading">
        <nav class="crumbs" aria-label="Breadcrumb">
          <a href={link({ page: 'trajectory', ...left })}>trajectory {left.key}</a> <span aria-hidden="true">›</span> <span>compare</span>
        </nav>
        <span class="grow" />
        <button type="button" onClick={() => go({ page: 'compare', left: right, right: left }, query)}>Swap sides</button>
        <button type="button" onClick={() => choose(step - 1)} disabled={step === 0}><span aria-hidden="true">←</span> Previous step</button>
        <span class="number">step {step + 1} of {steps}</span>
        <button type="button" onClick={() => choose(step + 1)} disabled={step + 1 >= steps}>Next step <span aria-hidden="true">→</span></button>
      </div>
      {error && <ErrorNotice text={error} />}
      {task !== undefined && <h2 class="compare-task"><UntrustedText text={task} /></h2>}
      {isDifferentTask && <p class="notice">These trajectories belong to different tasks.</p>}
      <div class="compare">
        {[{ id: left, loaded: leftLoaded, name: 'Left' }, { id: right, loaded: rightLoaded, name: 'Right' }].map(({ id, loaded, name }) => (
          <section key={name} class="side" aria-label={name}>
            {loaded.value
              ? <Side id={id} trajectory={loaded.value} step={step} siblings={siblings}
                  choose={(to) => go({ page: 'compare', left: name === 'Left' ? to : left, right: name === 'Left' ? right : to }, query)} />
              : !loaded.error && <Loading what="the trajectory" />}
          </section>
        ))}
      </div>
    </>
  );
}
