import { count, duration, percent, rate } from '../common/format';
import { Sparkline } from './Sparkline';
import type { Statistics } from './store';

const sum = (outcomes: Record<string, number>, ...names: string[]) => names.reduce((total, name) => total + (outcomes[name] ?? 0), 0);

/** The main numbers of a run: progress, success rate, speed and remaining time. */
export function Headline({ statistics, history }: { statistics: Statistics; history: number[] }) {
  const { outcomes, tasks, done } = statistics;
  const success = sum(outcomes, 'success');
  const judged = success + sum(outcomes, 'failure', 'blocked');
  const parts = [
    { kind: 'success', label: 'success', value: success },
    { kind: 'unsolved', label: 'finished without success', value: sum(outcomes, 'failure', 'blocked', 'judge_error') },
    { kind: 'lost', label: 'failed', value: sum(outcomes, 'infra_lost', 'cancelled', 'replay_miss') },
  ];
  return (
    <section class="headline" aria-label="Progress">
      <div class="bar" role="progressbar" aria-label="Tasks done" aria-valuemin={0} aria-valuemax={tasks} aria-valuenow={done} aria-valuetext={`${done} of ${tasks} tasks done`}>
        {parts.map(({ kind, value }) => <span key={kind} class={`kind-${kind}`} style={{ width: `${tasks ? (100 * value) / tasks : 0}%` }} />)}
      </div>
      <dl class="numbers">
        <Number label="Done" value={`${count(done)} / ${count(tasks)}`} more={percent(done, tasks)} />
        <Number label="Success rate" value={percent(success, judged)} more={`${count(success)} of ${count(judged)} judged`} />
        <Number label="Steps per second" value={rate(statistics.steps_per_second)} more={`${count(statistics.steps)} steps`}>
          <Sparkline values={history} label="Steps per second during the last minutes" />
        </Number>
        <Number label="Trajectories per minute" value={rate(statistics.trajectories_per_minute)} more={`${count(statistics.retried)} restarted`} />
        <Number label="Time left" value={done >= tasks ? 'done' : statistics.eta === null ? '–' : duration(statistics.eta)} more={`${duration(Math.floor(statistics.elapsed))} elapsed`} />
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
