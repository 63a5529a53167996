import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { colour, useThemeVersion } from '../../common/theme';
import type { Chart, LineName } from '../data/types';
import { Readout } from './Readout';
import { columns, formatValue, type Column, type Columns, type Shown } from './series';

const COLOURS: Record<LineName, string> = { overall: '--oi-black', easy: '--oi-green', medium: '--oi-blue', hard: '--oi-vermillion' };
const DASH = [6, 4];
const HEIGHT = 230;

function series({ split, line, isPale }: Column, chart: Chart): uPlot.Series {
  const stroke = colour(COLOURS[line]);
  return {
    label: `${split} ${line}${isPale ? ' (unsmoothed)' : ''}`,
    stroke: isPale ? stroke.replace('rgb(', 'rgba(').replace(')', ', 0.35)') : stroke,
    width: isPale ? 1 : 2,
    ...(split === 'test' && { dash: DASH }),
    points: { show: !isPale, size: 6, fill: split === 'test' ? colour('--surface') : stroke },
    value: (_, value) => formatValue(chart.unit, value as number | null),
  };
}

function options(chart: Chart, found: Columns, width: number, hover: (index: number | null) => void): uPlot.Options {
  const textColour = colour('--muted');
  const grid = { stroke: colour('--line'), width: 1 };
  const highest = Math.max(0, ...found.columns.flatMap(({ values }) => values.filter((value) => value !== null)));
  const top = chart.unit === 'share' ? (highest > 0.5 ? 1 : Math.max(0.1, highest * 1.1)) : Math.max(1, highest * 1.1);
  const [first, last] = [found.iterations[0] ?? 0, found.iterations.at(-1) ?? 0];
  return {
    width, height: HEIGHT, cursor: { sync: { key: 'webgym-curves' } }, legend: { show: false },
    hooks: { setCursor: [(plot) => hover(plot.cursor.idx ?? null)] },
    scales: { x: { time: false, range: [first - (first === last ? 0.5 : 0), last + (first === last ? 0.5 : 0)] }, y: { range: [0, top] } },
    axes: [
      { stroke: textColour, grid: { show: false }, ticks: grid, size: 34, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? String(mark) : '')) },
      { stroke: textColour, grid, ticks: { show: false }, size: 56, values: (_, marks) => marks.map((mark) => (chart.unit === 'share' ? `${+(mark * 100).toFixed(1)} %` : String(mark))) },
    ],
    series: [{ label: 'iteration' }, ...found.columns.map((column) => series(column, chart))],
  };
}

/** One measure over iterations, with its values as a table below. */
export function ChartView({ chart, shown }: { chart: Chart; shown: Shown }) {
  const box = useRef<HTMLDivElement>(null);
  const theme = useThemeVersion();
  const found = useMemo(() => columns(chart, shown), [chart, shown]);
  const [index, setIndex] = useState<number | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const width = () => Math.max(200, element.clientWidth);
    // The overall line is the first series; draw it last, on top of the others.
    const drawn = { ...found, columns: [...found.columns].reverse() };
    const plot = new uPlot(options(chart, drawn, width(), setIndex), [drawn.iterations, ...drawn.columns.map(({ values }) => values)], element);
    const resize = new ResizeObserver(() => plot.setSize({ width: width(), height: HEIGHT }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [found, theme]);
  const solid = found.columns.filter(({ isPale }) => !isPale);
  return (
    <section class="card chart" aria-labelledby={`chart-${chart.measure}`}>
      <h2 id={`chart-${chart.measure}`}>{chart.title} <span class="muted small">{chart.explanation}</span></h2>
      <div ref={box} class="canvas" role="img" aria-label={`${chart.title} by iteration; the values follow as a table`} />
      <Readout chart={chart} found={found} hovered={index} />
      <details class="pane">
        <summary class="small">Values</summary>
        <div class="scroll-across" tabIndex={0} role="region" aria-label={`Values of ${chart.title}`}>
          <table class="numbers small">
            <thead><tr><th scope="col">Iteration</th>{solid.map(({ split, line }) => <th key={split + line} scope="col">{split} {line}</th>)}</tr></thead>
            <tbody>
              {found.iterations.map((iteration, index) => (
                <tr key={iteration}><th scope="row">{iteration}</th>{solid.map(({ split, line, values }) => <td key={split + line} class="number">{formatValue(chart.unit, values[index])}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}
