import type { LineName, Split } from '../data/types';

export const LINES: LineName[] = ['overall', 'easy', 'medium', 'hard'];
export const SPLITS: Split[] = ['train', 'test'];

interface Props<T> {
  name: T;
  isOn: boolean;
  press: () => void;
}

/** A line of the charts, to show or hide: its colour tells the class. */
export function LineToggle({ name, isOn, press }: Props<LineName>) {
  return <button type="button" aria-pressed={isOn} onClick={press}><i class={`swatch line-${name}`} aria-hidden="true" />{name}</button>;
}

/** A split: drawn full or dashed. */
export function SplitToggle({ name, isOn, press }: Props<Split>) {
  return <button type="button" aria-pressed={isOn} onClick={press}><i class={`swatch split-${name}`} aria-hidden="true" />{name}</button>;
}
