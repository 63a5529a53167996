import { siblingsOf, useLoaded } from '../data/api';
import type { TrajectoryId } from '../data/route';
import type { Sibling } from '../data/types';
import { go } from '../data/useLocation';
import { outcomeLabel } from '../data/labels';

export const isSame = (a: TrajectoryId, b: TrajectoryId): boolean => a.split === b.split && a.iteration === b.iteration && a.key === b.key;
export const addressOf = ({ split, iteration, key }: TrajectoryId): string => `${split}/${iteration}/${key}`;
export const siblingLabel = ({ split, iteration, key, outcome, steps }: Sibling): string =>
  `${split} ${iteration}, #${key}: ${outcomeLabel(outcome)}, ${steps} steps`;

/** Selects another trajectory of the same task to compare with. */
export function ComparePicker({ id }: { id: TrajectoryId }) {
  const { value } = useLoaded(`siblings/${addressOf(id)}`, (signal) => siblingsOf(id, signal));
  const others = value?.filter((sibling) => !isSame(sibling, id)) ?? [];
  const choose = (name: string) => {
    const right = others.find((sibling) => addressOf(sibling) === name);
    if (right) go({ page: 'compare', left: id, right: { split: right.split, iteration: right.iteration, key: right.key } });
  };
  return (
    <label>
      <span class="visually-hidden">Compare with another trajectory of this task</span>
      <select class="compare-picker" value="" disabled={others.length === 0} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{!value ? 'Other trajectories…' : others.length === 0 ? 'No other trajectory' : `Compare with… (${others.length})`}</option>
        {others.map((sibling) => <option key={addressOf(sibling)} value={addressOf(sibling)}>{siblingLabel(sibling)}</option>)}
      </select>
    </label>
  );
}
