import { count } from '../../common/format';
import type { Chart, XAxis } from '../data/types';
import { formatValue, type Columns } from './series';

interface Props {
  chart: Chart;
  found: Columns;
  xAxis: XAxis;
  hovered: number | null;
}

/** The values at the position under the pointer, or at the last one. */
export function Readout({ chart, found, xAxis, hovered }: Props) {
  const index = hovered ?? found.x.length - 1;
  const position = found.x[index];
  return (
    <p class="readout small number" aria-hidden="true">
      {position !== undefined && <span class="muted">{xAxis === 'iterations' ? `iteration ${position}` : `${count(position)} trajectories`}</span>}
      {found.columns.filter(({ isPale, values }) => !isPale && values[index] !== undefined).map(({ split, line, values }) => (
        <span key={split + line}><i class={`swatch line-${line} ${split === 'test' ? 'dashed' : ''}`} />{formatValue(chart.unit, values[index])}</span>
      ))}
    </p>
  );
}
