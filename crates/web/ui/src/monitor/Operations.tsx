import { count, duration } from '../common/format';
import { STAGES } from './cells';
import type { Statistics } from './store';

/** How many episodes are in each stage and how long the stage takes. Also the text alternative of the grid. */
export function Operations({ statistics }: { statistics: Statistics }) {
  return (
    <section class="card">
      <h2>Stages</h2>
      <table>
        <thead><tr><th scope="col"><span class="visually-hidden">Letter</span></th><th scope="col">Stage</th><th scope="col" class="right">Episodes</th><th scope="col" class="right">Median</th><th scope="col" class="right">p95</th></tr></thead>
        <tbody>
          {STAGES.map(({ name, letter, label, kind }, number) => {
            const latency = statistics.latency[name];
            return (
              <tr key={name} data-stage={name}>
                <td><span class={`swatch kind-${kind === 'unsolved' ? 'success' : kind}`}>{letter}</span></td>
                <th scope="row">{label}</th>
                <td class="right number">{count(statistics.stages[number] ?? 0)}</td>
                <td class="right number muted">{latency ? duration(latency[1] / 1000) : ''}</td>
                <td class="right number muted">{latency ? duration(latency[2] / 1000) : ''}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {statistics.failures > 0 && <p class="muted small">{count(statistics.failures)} operations failed and were retried or reported to the agent.</p>}
    </section>
  );
}
