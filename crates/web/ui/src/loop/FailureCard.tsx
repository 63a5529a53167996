import { duration } from '../common/format';
import type { Failure } from './types';

/** The last attempt that failed or checkpoint that was rolled back, also if the loop went on. */
export function FailureCard({ failure, now }: { failure: Failure; now: number }) {
  return (
    <section class="card" data-failure={failure.phase}>
      <h2>{failure.is_rollback ? 'Last rollback' : 'Last failure'}</h2>
      <p><strong>{failure.phase}</strong> <span class="muted">iteration {failure.iteration}, {duration(Math.max(0, Math.floor(now - failure.at)))} ago</span></p>
      <pre class="log" tabIndex={0} aria-label="Reason">{failure.reason}</pre>
    </section>
  );
}
