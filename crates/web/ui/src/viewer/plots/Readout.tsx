import type { Chart } from '../data/types';
import { formatValue, type Columns } from './series';

/** The values of the iteration under the pointer, or of the latest one. */
export function Readout({ chart, found, hovered }: { chart: Chart; found: Columns; hovered: number | null }) {
  const index = hovered ?? found.iterations.length - 1;
  return (
    <p class="readout small number" aria-hidden="true">
      <span class="muted">iteration {found.iterations[index]}</span>
      {found.columns.filter(({ isPale }) => !isPale).map(({ split, line, values }) => (
        <span key={split + line}><i class={`swatch line-${line} ${split === 'test' ? 'dashed' : ''}`} />{formatValue(chart.unit, values[index])}</span>
      ))}
    </p>
  );
}
