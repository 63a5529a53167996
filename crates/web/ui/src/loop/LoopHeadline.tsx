import { UntrustedText } from '../common/UntrustedText';
import { count, duration, percent } from '../common/format';
import { modelName, ofSplit, progress, rate, secondsPerIteration, type Notice } from './summary';
import type { Loop, Split } from './types';

/** The main values of a loop: progress, success of both splits, time, and the last checkpoint. */
export function LoopHeadline({ loop, state, now, alive }: { loop: Loop; state: Notice; now: number; alive: boolean }) {
  const { done, planned } = progress(loop);
  const perIteration = secondsPerIteration(loop);
  const left = alive && perIteration !== null && planned > done ? `about ${duration(perIteration * (planned - done))} left` : '';
  return (
    <section class="headline" aria-label="Progress">
      <div class="bar" role="progressbar" aria-label="Iterations done" aria-valuemin={0} aria-valuemax={planned} aria-valuenow={Math.min(done, planned)} aria-valuetext={`${done} of ${planned} iterations done`}>
        <span style={{ width: `${planned ? Math.min(100, (100 * done) / planned) : 0}%` }} />
      </div>
      <dl class="numbers">
        <div class="card">
          <dt>Iterations done</dt>
          <dd><span class="big number">{count(done)} / {count(planned)}</span><span class={`badge ${state.tone}`} data-loop={loop.status}>{state.label}</span></dd>
        </div>
        <Success loop={loop} split="train" />
        <Success loop={loop} split="test" />
        <div class="card">
          <dt>Time per iteration</dt>
          <dd><span class="big number">{perIteration === null ? '–' : duration(perIteration)}</span><span class="muted small">{left}</span></dd>
        </div>
        <div class="card">
          <dt>Last checkpoint</dt>
          <dd title={loop.checkpoint?.path}>
            <span class="big"><UntrustedText text={loop.checkpoint ? modelName(loop.checkpoint.path) : 'none yet'} /></span>
            <span class="muted small number">{loop.checkpoint?.at && `${duration(Math.max(0, Math.floor(now - loop.checkpoint.at)))} ago`}</span>
          </dd>
        </div>
      </dl>
    </section>
  );
}

function Success({ loop, split }: { loop: Loop; split: Split }) {
  const known = ofSplit(loop.success, split);
  const last = known.at(-1);
  const first = known[0];
  const change = last && first && known.length > 1 ? Math.round(100 * (rate(last) - rate(first))) : null;
  return (
    <div class="card" data-success={split}>
      <dt>Success, {split}</dt>
      <dd>
        <span class="big number">{last ? percent(last.successes, last.scored) : '–'}</span>
        {last && <span class="muted small number">{change !== null && <span title={`Points since iteration ${first?.iteration}`}>{change > 0 ? '+' : change < 0 ? '−' : '±'}{Math.abs(change)} · </span>}{count(last.successes)} of {count(last.scored)} in iteration {last.iteration}</span>}
      </dd>
    </div>
  );
}
