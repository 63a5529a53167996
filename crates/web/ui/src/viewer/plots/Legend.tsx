import type { LineName, Split } from '../data/types';

export const LINES: LineName[] = ['overall', 'easy', 'medium', 'hard'];
export const SPLITS: Split[] = ['train', 'test'];

interface Props<T> {
  name: T;
  isOn: boolean;
  toggle: () => void;
}

/** Shows or hides the lines of a difficulty class. */
export function LineToggle({ name, isOn, toggle }: Props<LineName>) {
  return <button type="button" aria-pressed={isOn} onClick={toggle}><i class={`swatch line-${name}`} aria-hidden="true" />{name}</button>;
}

/** Shows or hides a split: solid lines for train, dashed lines for test. */
export function SplitToggle({ name, isOn, toggle }: Props<Split>) {
  return <button type="button" aria-pressed={isOn} onClick={toggle}><i class={`swatch split-${name}`} aria-hidden="true" />{name}</button>;
}
