import type { Chart } from '../data/types';
import { valueWords, type Columns } from './series';

/** The values at the iteration under the pointer; of the latest one while the pointer is elsewhere. */
export function Readout({ chart, found, place }: { chart: Chart; found: Columns; place: number | null }) {
  const at = place ?? found.iterations.length - 1;
  return (
    <p class="readout small number" aria-hidden="true">
      <span class="muted">iteration {found.iterations[at]}</span>
      {found.columns.filter(({ isPale }) => !isPale).map(({ split, line, values }) => (
        <span key={split + line}><i class={`swatch line-${line} ${split === 'test' ? 'dashed' : ''}`} />{valueWords(chart.unit, values[at])}</span>
      ))}
    </p>
  );
}
