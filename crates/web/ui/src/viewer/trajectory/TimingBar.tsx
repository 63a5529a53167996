import { UntrustedText } from '../../common/UntrustedText';
import { duration } from '../../common/format';
import type { Step } from '../data/types';
import { timings } from './timings';

/** The duration of each stage of a step, scaled to the longest step. */
export function TimingBar({ step, longest }: { step: Step; longest: number }) {
  const found = timings(step);
  if (found.length === 0) return null;
  return (
    <div class="timings">
      <span class="bar" aria-hidden="true">
        {found.map(({ stage, milliseconds }, number) => (
          <i key={stage} class={`stage-${number % 5}`} style={{ width: `${(100 * milliseconds) / Math.max(1, longest)}%` }} />
        ))}
      </span>
      <ul class="small">
        {found.map(({ stage, milliseconds }, number) => (
          <li key={stage}><i class={`stage-${number % 5}`} aria-hidden="true" /><UntrustedText text={stage} /> <span class="number">{duration(milliseconds / 1000)}</span></li>
        ))}
      </ul>
    </div>
  );
}
