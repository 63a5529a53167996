import { UntrustedText } from '../common/UntrustedText';
import { duration } from '../common/format';
import type { Activity, PhaseName } from './types';

const WORDS: Record<PhaseName, string> = {
  serve: 'The model server is started, and must serve the model of this iteration.',
  collect: 'Episodes of the train split are collected.',
  evaluate: 'Episodes of the test split are collected.',
  export: 'The training data is written.',
  train: 'The trainer writes the next checkpoint.',
  verify: 'The checkpoint is checked: complete and readable.',
  switch: 'The checkpoint becomes the current model.',
};

/** What runs now, or ran when the loop ended, with the last lines of its log. */
export function ActivityCard({ activity, now, alive }: { activity: Activity; now: number; alive: boolean }) {
  const isRunning = alive && activity.status === 'running';
  return (
    <section class="card activity" data-phase={activity.phase}>
      <h2>{isRunning ? 'Now' : alive ? 'Next' : 'Last activity'}</h2>
      <p class="what">
        <strong>{activity.phase}</strong> <span class="muted">iteration {activity.iteration}{activity.attempt > 1 && `, attempt ${activity.attempt}`}</span>
        {isRunning && activity.since !== null && <span class="number">{duration(Math.max(0, Math.floor(now - activity.since)))}</span>}
      </p>
      <p class="muted small">{WORDS[activity.phase]}</p>
      {activity.log_lines.length > 0 && (
        <>
          <pre class="log" tabIndex={0} aria-label="End of the log">{activity.log_lines.join('\n')}</pre>
          <p class="muted small"><UntrustedText text={activity.log} class="mono" /></p>
        </>
      )}
    </section>
  );
}
