import { UntrustedText } from '../../common/UntrustedText';
import { contents, useLoaded } from '../data/api';
import type { IterationId, Split } from '../data/types';
import { ErrorNotice, Loading } from '../Notice';
import { IterationRow } from './IterationRow';

const SPLITS: Split[] = ['train', 'test'];

function SplitSection({ split, iterations }: { split: Split; iterations: IterationId[] }) {
  return (
    <section class="card" aria-labelledby={`split-${split}`}>
      <h2 id={`split-${split}`}>{split === 'train' ? 'Train' : 'Test'}</h2>
      <div class="scroll-across" role="region" aria-label={`Iterations of ${split}`} tabIndex={0}>
        <table class="iterations">
          <thead>
            <tr>
              <th scope="col">Iteration</th>
              <th scope="col">Trajectories</th>
              <th scope="col">Success rate</th>
              <th scope="col" class="wide">Outcomes</th>
              <th scope="col">Success by difficulty</th>
              <th scope="col">Average steps</th>
              <th scope="col">Crashed</th>
              <th scope="col">Blocked</th>
              <th scope="col">Model</th>
              <th scope="col">Last change</th>
            </tr>
          </thead>
          <tbody>{iterations.map((id) => <IterationRow key={id.iteration} id={id} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

/** The iterations of the save path, the latest first. */
export function IterationsPage() {
  const { value, error } = useLoaded('contents', contents, () => 10);
  if (!value) return error ? <ErrorNotice text={error} /> : <Loading what="the save path" />;
  return (
    <>
      {error && <ErrorNotice text={error} />}
      <p class="muted">Save path <UntrustedText text={value.save_path} class="mono" /></p>
      {value.iterations.length === 0 && (
        <p class="card">There are no trajectories here yet. They appear as soon as a run with this save path starts.</p>
      )}
      {SPLITS.map((split) => {
        const iterations = value.iterations.filter((id) => id.split === split).reverse();
        return iterations.length > 0 && <SplitSection key={split} split={split} iterations={iterations} />;
      })}
    </>
  );
}
