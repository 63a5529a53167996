import { siblingsOf, useLoaded } from '../data/api';
import type { Where } from '../data/route';
import type { Sibling } from '../data/types';
import { go } from '../data/useLocation';
import { outcomeWords } from '../data/words';

export const isSame = (a: Where, b: Where): boolean => a.split === b.split && a.iteration === b.iteration && a.key === b.key;
export const addressOf = ({ split, iteration, key }: Where): string => `${split}/${iteration}/${key}`;
export const siblingWords = ({ split, iteration, key, outcome, steps }: Sibling): string =>
  `${split} ${iteration}, #${key}: ${outcomeWords(outcome)}, ${steps} steps`;

/** Other attempts at the same task, to put beside this one. */
export function ComparePicker({ where }: { where: Where }) {
  const { value } = useLoaded(`siblings/${addressOf(where)}`, (signal) => siblingsOf(where, signal));
  const others = value?.filter((one) => !isSame(one, where)) ?? [];
  const choose = (name: string) => {
    const right = others.find((one) => addressOf(one) === name);
    if (right) go({ page: 'compare', left: where, right: { split: right.split, iteration: right.iteration, key: right.key } });
  };
  return (
    <label>
      <span class="visually-hidden">Compare with another attempt at this task</span>
      <select class="compare-picker" value="" disabled={others.length === 0} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{!value ? 'Other attempts…' : others.length === 0 ? 'No other attempt' : `Compare with… (${others.length})`}</option>
        {others.map((one) => <option key={addressOf(one)} value={addressOf(one)}>{siblingWords(one)}</option>)}
      </select>
    </label>
  );
}
