import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { colour, useThemeVersion } from '../../common/theme';
import type { Chart, LineName, XAxis } from '../data/types';
import { Readout } from './Readout';
import { columns, formatValue, type Column, type Columns, type Shown } from './series';

const COLOURS: Record<LineName, string> = { overall: '--oi-black', easy: '--oi-green', medium: '--oi-blue', hard: '--oi-vermillion' };
const DASH = [6, 4];
const HEIGHT = 230;
/** Distances between the marks of the x axis: 1, 2 and 5 times powers of ten. */
const INCREMENTS = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((factor) => factor * 10 ** power));

function series({ split, line, isPale }: Column, chart: Chart): uPlot.Series {
  const stroke = colour(COLOURS[line]);
  return {
    label: `${split} ${line}${isPale ? ' (unsmoothed)' : ''}`,
    stroke: isPale ? stroke.replace('rgb(', 'rgba(').replace(')', ', 0.35)') : stroke,
    width: isPale ? 1 : 2,
    ...(split === 'test' && { dash: DASH }),
    points: { show: !isPale, size: 6, fill: split === 'test' ? colour('--surface') : stroke },
    value: (_, value) => formatValue(chart.unit, value as number | null | undefined),
  };
}

function options(chart: Chart, found: Columns, range: [number, number], width: number, hover: (index: number | null) => void): uPlot.Options {
  const textColour = colour('--muted');
  const grid = { stroke: colour('--line'), width: 1 };
  const highest = Math.max(0, ...found.columns.flatMap(({ values }) => values.filter((value) => typeof value === 'number')));
  const top = chart.unit === 'share' ? (highest > 0.5 ? 1 : Math.max(0.1, highest * 1.1)) : Math.max(1, highest * 1.1);
  return {
    width, height: HEIGHT, cursor: { sync: { key: 'webgym-curves' } }, legend: { show: false },
    hooks: { setCursor: [(plot) => hover(plot.cursor.idx ?? null)] },
    scales: { x: { time: false, range }, y: { range: [0, top] } },
    axes: [
      { stroke: textColour, grid: { show: false }, ticks: grid, size: 34, incrs: INCREMENTS, values: (_, marks) => marks.map((mark) => (Number.isInteger(mark) ? String(mark) : '')) },
      { stroke: textColour, grid, ticks: { show: false }, size: 56, values: (_, marks) => marks.map((mark) => (chart.unit === 'share' ? `${+(mark * 100).toFixed(1)} %` : String(mark))) },
    ],
    series: [{ label: 'x' }, ...found.columns.map((column) => series(column, chart))],
  };
}

interface Props {
  chart: Chart;
  shown: Shown;
  xAxis: XAxis;
  range: [number, number];
}

/** One measure over iterations or trajectories, with its values as a table below. */
export function ChartView({ chart, shown, xAxis, range }: Props) {
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
    const plot = new uPlot(options(chart, drawn, range, width(), setIndex), [drawn.x, ...drawn.columns.map(({ values }) => values)], element);
    const resize = new ResizeObserver(() => plot.setSize({ width: width(), height: HEIGHT }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      plot.destroy();
    };
  }, [found, theme, ...range]);
  const solid = found.columns.filter(({ isPale }) => !isPale);
  return (
    <section class="card chart" aria-labelledby={`chart-${chart.measure}`}>
      <h2 id={`chart-${chart.measure}`}>{chart.title} <span class="muted small">{chart.explanation}</span></h2>
      <div ref={box} class="canvas" role="img" aria-label={`${chart.title} by ${xAxis}; the values follow as a table`} />
      <Readout chart={chart} found={found} xAxis={xAxis} hovered={index} />
      <details class="pane">
        <summary class="small">Values</summary>
        <div class="scroll-across" tabIndex={0} role="region" aria-label={`Values of ${chart.title}`}>
          <table class="numbers small">
            <thead><tr><th scope="col">{xAxis === 'iterations' ? 'Iteration' : 'Trajectories'}</th>{solid.map(({ split, line }) => <th key={split + line} scope="col">{split} {line}</th>)}</tr></thead>
            <tbody>
              {found.x.map((position, index) => (
                <tr key={position}><th scope="row">{position}</th>{solid.map(({ split, line, values }) => <td key={split + line} class="number">{formatValue(chart.unit, values[index])}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}
