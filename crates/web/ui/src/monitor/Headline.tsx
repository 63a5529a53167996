import { count, duration, percent, rate } from '../common/format';
import { Sparkline } from './Sparkline';
import type { Figures } from './store';

const sum = (outcomes: Record<string, number>, ...names: string[]) => names.reduce((total, name) => total + (outcomes[name] ?? 0), 0);

/** How far, how well, how fast: the numbers one looks for first. */
export function Headline({ figures, history }: { figures: Figures; history: number[] }) {
  const { outcomes, tasks, done } = figures;
  const success = sum(outcomes, 'success');
  const judged = success + sum(outcomes, 'failure', 'blocked');
  const parts = [
    { kind: 'success', label: 'success', value: success },
    { kind: 'over', label: 'finished otherwise', value: sum(outcomes, 'failure', 'blocked', 'judge_error') },
    { kind: 'lost', label: 'failed', value: sum(outcomes, 'infra_lost', 'cancelled') },
  ];
  return (
    <section class="headline" aria-label="Progress">
      <div class="bar" role="progressbar" aria-label="Tasks that are over" aria-valuemin={0} aria-valuemax={tasks} aria-valuenow={done} aria-valuetext={`${done} of ${tasks} tasks are over`}>
        {parts.map(({ kind, value }) => <span key={kind} class={`kind-${kind}`} style={{ width: `${tasks ? (100 * value) / tasks : 0}%` }} />)}
      </div>
      <dl class="numbers">
        <Number label="Done" value={`${count(done)} / ${count(tasks)}`} more={percent(done, tasks)} />
        <Number label="Success so far" value={percent(success, judged)} more={`${count(success)} of ${count(judged)} judged`} />
        <Number label="Steps per second" value={rate(figures.steps_per_second)} more={`${count(figures.steps)} steps`}>
          <Sparkline values={history} label="Steps per second over the last minutes" />
        </Number>
        <Number label="Trajectories per minute" value={rate(figures.trajectories_per_minute)} more={`${count(figures.retried)} started afresh`} />
        <Number label="Time left" value={done >= tasks ? 'done' : figures.eta === null ? '–' : duration(figures.eta)} more={`${duration(Math.floor(figures.elapsed))} elapsed`} />
      </dl>
    </section>
  );
}

function Number({ label, value, more, children }: { label: string; value: string; more: string; children?: preact.ComponentChildren }) {
  return (
    <div class="card">
      <dt>{label}</dt>
      <dd><span class="big number">{value}</span>{children}<span class="muted small number">{more}</span></dd>
    </div>
  );
}
