import { count, duration } from '../common/format';
import { STAGES } from './cells';
import type { Figures } from './store';

/** What episodes are doing now and how long that takes, as a table: also for those who do not see the grid. */
export function Operations({ figures }: { figures: Figures }) {
  return (
    <section class="card">
      <h2>States and operations</h2>
      <table>
        <thead><tr><th scope="col"><span class="visually-hidden">Letter</span></th><th scope="col">What</th><th scope="col" class="right">Now</th><th scope="col" class="right">Median</th><th scope="col" class="right">95 %</th></tr></thead>
        <tbody>
          {STAGES.map(({ name, letter, label, kind }, number) => {
            const took = figures.latency[name];
            return (
              <tr key={name} data-stage={name}>
                <td><span class={`swatch kind-${kind === 'over' ? 'success' : kind}`}>{letter}</span></td>
                <th scope="row">{label}</th>
                <td class="right number">{count(figures.stages[number] ?? 0)}</td>
                <td class="right number muted">{took ? duration(took[1] / 1000) : ''}</td>
                <td class="right number muted">{took ? duration(took[2] / 1000) : ''}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {figures.troubles > 0 && <p class="muted small">{count(figures.troubles)} operations failed and were tried again or reported to the agent.</p>}
    </section>
  );
}
