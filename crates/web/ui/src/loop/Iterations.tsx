import { UntrustedText } from '../common/UntrustedText';
import { count, duration, percent } from '../common/format';
import { modelName, phaseSeconds } from './summary';
import { PHASES, type Iteration, type Loop, type Phase, type Split } from './types';

const MARKS: Record<Phase['status'], [mark: string, word: string]> = {
  done: ['✓', 'done'], running: ['▶', 'running'], failed: ['✗', 'failed'], skipped: ['–', 'skipped'], pending: ['·', 'pending'],
};

/** All iterations with their phases, the latest first. */
export function Iterations({ loop, now, alive }: { loop: Loop; now: number; alive: boolean }) {
  return (
    <section class="card iterations">
      <h2>Iterations</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Iterations">
        <table>
          <thead>
            <tr><th>#</th>{PHASES.map((phase) => <th key={phase}>{phase}</th>)}<th class="right">success, train</th><th class="right">success, test</th><th>model</th><th>checkpoint</th></tr>
          </thead>
          <tbody>
            {[...loop.iterations].reverse().map((iteration) => <Row key={iteration.number} iteration={iteration} loop={loop} now={now} alive={alive} />)}
          </tbody>
        </table>
      </div>
      {loop.iterations.length === 0 && <p class="muted small">No iteration has begun.</p>}
      {loop.earlier_iterations > 0 && <p class="muted small">{count(loop.earlier_iterations)} earlier iterations are not listed.</p>}
    </section>
  );
}

function Row({ iteration, loop, now, alive }: { iteration: Iteration; loop: Loop; now: number; alive: boolean }) {
  const success = (split: Split) => loop.success.find((one) => one.split === split && one.iteration === iteration.number);
  const share = (split: Split) => {
    const found = success(split);
    return found ? percent(found.successes, found.scored) : '';
  };
  return (
    <tr data-iteration={iteration.number}>
      <th class="number">{iteration.number < loop.first_iteration + loop.iterations_planned ? iteration.number : 'final'}</th>
      {PHASES.map((name) => <PhaseCell key={name} phase={iteration.phases.find(({ phase }) => phase === name)} now={now} alive={alive} />)}
      <td class="right number">{share('train')}</td>
      <td class="right number">{share('test')}</td>
      <td title={iteration.model}><UntrustedText text={modelName(iteration.model)} class="mono" /></td>
      <td title={iteration.checkpoint ?? undefined}>
        <UntrustedText text={iteration.checkpoint ? modelName(iteration.checkpoint) : ''} class="mono" />
        {iteration.rollbacks > 0 && <span class="badge bad">{iteration.rollbacks === 1 ? 'rolled back' : `rolled back ${iteration.rollbacks}×`}</span>}
      </td>
    </tr>
  );
}

function PhaseCell({ phase, now, alive }: { phase: Phase | undefined; now: number; alive: boolean }) {
  if (!phase) return <td />;
  const isInterrupted = phase.status === 'running' && !alive;
  const [mark, word] = isInterrupted ? ['!', 'interrupted'] : MARKS[phase.status];
  const seconds = phaseSeconds(phase, now, alive);
  const title = [word, phase.failures > 0 && `${phase.failures} failed attempts`, phase.reason].filter(Boolean).join(' · ');
  return (
    <td title={title}>
      <span class={`phase phase-${isInterrupted ? 'failed' : phase.status}`}>
        <span aria-hidden="true">{mark}</span><span class="visually-hidden">{word}</span>
        {seconds !== null && <span class="number">{duration(phase.status === 'running' ? Math.floor(seconds) : seconds)}</span>}
        {phase.failures > 0 && <span class="retries">{phase.failures}×✗</span>}
      </span>
    </td>
  );
}
