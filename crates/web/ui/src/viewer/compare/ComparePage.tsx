import { Foreign } from '../../common/Foreign';
import { useKeys } from '../../common/keys';
import { siblingsOf, trajectoryAt, useLoaded } from '../data/api';
import { changed, link, type Where } from '../data/route';
import { go } from '../data/useLocation';
import { stepNow, stepOf } from '../trajectory/useSteps';
import { Trouble, Waiting } from '../Trouble';
import { addressOf } from './ComparePicker';
import { Side } from './Side';

/** Two attempts at one task, side by side; the arrow keys move both. */
export function ComparePage({ left, right, query }: { left: Where; right: Where; query: URLSearchParams }) {
  const one = useLoaded(addressOf(left), (signal) => trajectoryAt(left, signal));
  const other = useLoaded(addressOf(right), (signal) => trajectoryAt(right, signal));
  const siblings = useLoaded(`siblings/${addressOf(left)}`, (signal) => siblingsOf(left, signal)).value ?? [];
  const most = Math.max(one.value?.steps.length ?? 0, other.value?.steps.length ?? 0);
  const step = stepOf(query, most);
  const choose = (number: number) => {
    const wanted = Math.max(0, Math.min(most - 1, number));
    go({ page: 'compare', left, right }, changed(query, { step: wanted === 0 ? null : String(wanted + 1) }), true);
  };
  useKeys((event) => {
    switch (event.key) {
      case 'ArrowRight': choose(stepNow(most) + 1); return true;
      case 'ArrowLeft': choose(stepNow(most) - 1); return true;
      case 'Home': choose(0); return true;
      case 'End': choose(most - 1); return true;
      case 'u': case 'Escape': go({ page: 'trajectory', ...left }); return true;
      default: return false;
    }
  });
  const error = one.error ?? other.error;
  const task = one.value?.task.task_name;
  const isOther = task !== undefined && other.value !== null && other.value.task.task_name !== task;
  return (
    <>
      <div class="heading">
        <nav class="crumbs" aria-label="Place">
          <a href={link({ page: 'trajectory', ...left })}>trajectory {left.key}</a> <span aria-hidden="true">›</span> <span>compare</span>
        </nav>
        <span class="grow" />
        <button type="button" onClick={() => go({ page: 'compare', left: right, right: left }, query)}>Swap sides</button>
        <button type="button" onClick={() => choose(step - 1)} disabled={step === 0}><span aria-hidden="true">←</span> Back</button>
        <span class="number">step {step + 1} of {most}</span>
        <button type="button" onClick={() => choose(step + 1)} disabled={step + 1 >= most}>On <span aria-hidden="true">→</span></button>
      </div>
      {error && <Trouble text={error} />}
      {task !== undefined && <h2 class="compare-task"><Foreign text={task} /></h2>}
      {isOther && <p class="notice">These are attempts at different tasks.</p>}
      <div class="compare">
        {[{ where: left, loaded: one, name: 'Left' }, { where: right, loaded: other, name: 'Right' }].map(({ where, loaded, name }) => (
          <section key={name} class="side" aria-label={name}>
            {loaded.value
              ? <Side where={where} trajectory={loaded.value} step={step} siblings={siblings}
                  choose={(to) => go({ page: 'compare', left: name === 'Left' ? to : left, right: name === 'Left' ? right : to }, query)} />
              : !loaded.error && <Waiting what="the trajectory" />}
          </section>
        ))}
      </div>
    </>
  );
}
