import { outcomeTone, outcomeWords } from './data/words';

export function Outcome({ outcome }: { outcome: string }) {
  return <span class={`badge ${outcomeTone(outcome)}`}>{outcomeWords(outcome)}</span>;
}
