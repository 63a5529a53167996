import { useMemo } from 'preact/hooks';
import { count } from '../../common/format';
import { charts, plotFile, useLoaded } from '../data/api';
import { changed } from '../data/route';
import type { LineName, Split, XAxis } from '../data/types';
import { go } from '../data/useLocation';
import { ErrorNotice, Loading } from '../Notice';
import { ChartView } from './ChartView';
import { LINES, LineToggle, SPLITS, SplitToggle } from './Legend';
import { plotOptions } from './options';
import { xRange } from './series';

const X_AXES: XAxis[] = ['iterations', 'trajectories'];

/** Returns the names of hidden lines and splits from the query. */
const hidden = (query: URLSearchParams): Set<string> => new Set((query.get('hide') ?? '').split(',').filter(Boolean));

export function PlotsPage({ query }: { query: URLSearchParams }) {
  const options = plotOptions(query);
  const { ema, x, ood } = options;
  const { value, error } = useLoaded(`curves/${ema}/${x}/${ood}`, (signal) => charts(options, signal), () => 30);
  const hide = query.get('hide') ?? '';
  const shown = useMemo(() => {
    const hiddenNames = hidden(query);
    return {
      splits: new Set<Split>(SPLITS.filter((split) => !hiddenNames.has(split))),
      lines: new Set<LineName>(LINES.filter((line) => !hiddenNames.has(line))),
    };
  }, [hide]);
  const range = useMemo(() => xRange(value?.charts ?? [], shown), [value, shown]);
  const change = (values: Record<string, string | null>) => go({ page: 'plots' }, changed(query, values), true);
  const toggle = (name: string) => {
    const hiddenNames = hidden(query);
    if (!hiddenNames.delete(name)) hiddenNames.add(name);
    change({ hide: [...hiddenNames].join(',') });
  };
  return (
    <>
      <div class="heading">
        <h2>Metrics by {x === 'iterations' ? 'iteration' : 'number of trajectories'}</h2>
        {value && <span class="muted">{count(value.trajectories)} trajectories</span>}
        <span class="grow" />
        <a class="button" href={plotFile('png', options)} download="metrics.png">Download PNG</a>
        <a class="button" href={plotFile('svg', options)} download="metrics.svg">Download SVG</a>
      </div>
      <div class="filters" role="group" aria-label="Lines shown">
        {LINES.map((line) => <LineToggle key={line} name={line} isOn={shown.lines.has(line)} toggle={() => toggle(line)} />)}
        {SPLITS.map((split) => <SplitToggle key={split} name={split} isOn={shown.splits.has(split)} toggle={() => toggle(split)} />)}
        <span class="segmented" role="group" aria-label="X axis">
          {X_AXES.map((axis) => (
            <button key={axis} type="button" aria-pressed={x === axis} onClick={() => change({ x: axis === 'iterations' ? null : axis })}>by {axis}</button>
          ))}
        </span>
        <button type="button" aria-pressed={ood} title="Of the test tasks only those whose distribution is ood or missing" onClick={() => change({ ood: ood ? null : 'true' })}>
          test: only out of distribution
        </button>
        <label class="ema">
          Smoothing: EMA with alpha <span class="number">{ema.toFixed(2)}</span>
          <input type="range" min="0.05" max="1" step="0.05" value={ema}
            onInput={(event) => change({ ema: event.currentTarget.value === '1' ? null : event.currentTarget.value })} />
        </label>
      </div>
      {error && <ErrorNotice text={error} />}
      {!value && !error && <Loading what="the iterations" />}
      <div class="charts">{value?.charts.map((chart) => <ChartView key={chart.measure} chart={chart} shown={shown} xAxis={value.x} range={range} />)}</div>
    </>
  );
}
