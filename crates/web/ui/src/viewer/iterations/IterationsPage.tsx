import { Foreign } from '../../common/Foreign';
import { contents, useLoaded } from '../data/api';
import type { Place, Split } from '../data/types';
import { Trouble, Waiting } from '../Trouble';
import { IterationRow } from './IterationRow';

const SPLITS: Split[] = ['train', 'test'];

function SplitSection({ split, places }: { split: Split; places: Place[] }) {
  return (
    <section class="card" aria-labelledby={`split-${split}`}>
      <h2 id={`split-${split}`}>{split === 'train' ? 'Train' : 'Test'}</h2>
      <div class="scroll-across" role="region" aria-label={`Iterations of ${split}`} tabIndex={0}>
        <table class="iterations">
          <thead>
            <tr>
              <th scope="col">Iteration</th>
              <th scope="col">Trajectories</th>
              <th scope="col">Success</th>
              <th scope="col" class="wide">Outcomes</th>
              <th scope="col">Success by difficulty</th>
              <th scope="col">Steps</th>
              <th scope="col">Crashed</th>
              <th scope="col">Blocked</th>
              <th scope="col">Model</th>
              <th scope="col">Written</th>
            </tr>
          </thead>
          <tbody>{places.map((place) => <IterationRow key={place.iteration} place={place} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

/** What is in the save path, the latest iteration first. */
export function IterationsPage() {
  const { value, error } = useLoaded('contents', contents, () => 10);
  if (!value) return error ? <Trouble text={error} /> : <Waiting what="the save path" />;
  return (
    <>
      {error && <Trouble text={error} />}
      <p class="muted">Saved under <Foreign text={value.save_path} class="mono" /></p>
      {value.iterations.length === 0 && (
        <p class="card">There are no trajectories here yet. They appear as soon as a run with this save path has begun.</p>
      )}
      {SPLITS.map((split) => {
        const places = value.iterations.filter((place) => place.split === split).reverse();
        return places.length > 0 && <SplitSection key={split} split={split} places={places} />;
      })}
    </>
  );
}
