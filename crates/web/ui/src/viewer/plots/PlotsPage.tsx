import { useMemo } from 'preact/hooks';
import { count } from '../../common/format';
import { charts, plotFile, useLoaded } from '../data/api';
import { changed } from '../data/route';
import type { LineName, Split } from '../data/types';
import { go } from '../data/useLocation';
import { ErrorNotice, Loading } from '../Notice';
import { ChartView } from './ChartView';
import { LINES, LineToggle, SPLITS, SplitToggle } from './Legend';

/** Returns the names of hidden lines and splits from the query. */
const hidden = (query: URLSearchParams): Set<string> => new Set((query.get('hide') ?? '').split(',').filter(Boolean));

/** Returns the weight of the new value in the moving average; 1 is unsmoothed. */
function emaOf(query: URLSearchParams): number {
  const ema = Number(query.get('ema') ?? '1');
  return ema > 0 && ema < 1 ? ema : 1;
}

export function PlotsPage({ query }: { query: URLSearchParams }) {
  const ema = emaOf(query);
  const { value, error } = useLoaded(`curves/${ema}`, (signal) => charts(ema, signal), () => 30);
  const hide = query.get('hide') ?? '';
  const shown = useMemo(() => {
    const hiddenNames = hidden(query);
    return {
      splits: new Set<Split>(SPLITS.filter((split) => !hiddenNames.has(split))),
      lines: new Set<LineName>(LINES.filter((line) => !hiddenNames.has(line))),
    };
  }, [hide]);
  const toggle = (name: string) => {
    const hiddenNames = hidden(query);
    if (!hiddenNames.delete(name)) hiddenNames.add(name);
    go({ page: 'plots' }, changed(query, { hide: [...hiddenNames].join(',') }), true);
  };
  return (
    <>
      <div class="heading">
        <h2>Metrics by iteration</h2>
        {value && <span class="muted">{count(value.trajectories)} trajectories</span>}
        <span class="grow" />
        <a class="button" href={plotFile('png', ema)} download="metrics.png">Download PNG</a>
        <a class="button" href={plotFile('svg', ema)} download="metrics.svg">Download SVG</a>
      </div>
      <div class="filters" role="group" aria-label="Lines shown">
        {LINES.map((line) => <LineToggle key={line} name={line} isOn={shown.lines.has(line)} toggle={() => toggle(line)} />)}
        {SPLITS.map((split) => <SplitToggle key={split} name={split} isOn={shown.splits.has(split)} toggle={() => toggle(split)} />)}
        <label class="ema">
          Smoothing: EMA with alpha <span class="number">{ema.toFixed(2)}</span>
          <input type="range" min="0.05" max="1" step="0.05" value={ema}
            onInput={(event) => go({ page: 'plots' }, changed(query, { ema: event.currentTarget.value === '1' ? null : event.currentTarget.value }), true)} />
        </label>
      </div>
      {error && <ErrorNotice text={error} />}
      {!value && !error && <Loading what="the iterations" />}
      <div class="charts">{value?.charts.map((chart) => <ChartView key={chart.measure} chart={chart} shown={shown} />)}</div>
    </>
  );
}
