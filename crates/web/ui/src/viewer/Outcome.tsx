import { outcomeTone, outcomeLabel } from './data/labels';

export function Outcome({ outcome }: { outcome: string }) {
  return <span class={`badge ${outcomeTone(outcome)}`}>{outcomeLabel(outcome)}</span>;
}
