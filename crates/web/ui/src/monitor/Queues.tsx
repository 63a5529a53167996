import { count, duration } from '../common/format';
import type { Figures, Queue } from './store';

/** Whoever everyone may be waiting for: the policy and the judge. */
export function Queues({ figures }: { figures: Figures }) {
  return (
    <section class="card">
      <h2>Policy and judge</h2>
      <table>
        <thead><tr><th scope="col">Who</th><th scope="col" class="right">At work</th><th scope="col" class="right">Queue</th><th scope="col" class="right">Median</th><th scope="col" class="right">95 %</th></tr></thead>
        <tbody>
          <Row name="Policy" queue={figures.policy} took={figures.latency.policy} />
          <Row name="Judge" queue={figures.judge} took={figures.latency.reward} />
        </tbody>
      </table>
    </section>
  );
}

function Row({ name, queue, took }: { name: string; queue: Queue; took: [number, number, number] | undefined }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="right number">{count(queue.busy)}{queue.places > 0 && <span class="muted"> / {count(queue.places)}</span>}</td>
      <td class="right number">{queue.waiting > 0 ? <span class="badge warn">{count(queue.waiting)}</span> : '0'}</td>
      <td class="right number">{took ? duration(took[1] / 1000) : '–'}</td>
      <td class="right number">{took ? duration(took[2] / 1000) : '–'}</td>
    </tr>
  );
}
