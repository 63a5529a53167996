import { count, duration } from '../common/format';
import type { Statistics, Queue } from './store';

/** Load of the policy and the judge: active requests, waiting episodes and latency. */
export function Queues({ statistics }: { statistics: Statistics }) {
  return (
    <section class="card">
      <h2>Policy and judge</h2>
      <table>
        <thead><tr><th scope="col">Model</th><th scope="col" class="right">Active</th><th scope="col" class="right">Waiting</th><th scope="col" class="right">Median</th><th scope="col" class="right">p95</th></tr></thead>
        <tbody>
          <Row name="Policy" queue={statistics.policy} latency={statistics.latency.policy} />
          <Row name="Judge" queue={statistics.judge} latency={statistics.latency.reward} />
        </tbody>
      </table>
    </section>
  );
}

function Row({ name, queue, latency }: { name: string; queue: Queue; latency: [number, number, number] | undefined }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="right number">{count(queue.busy)}{queue.slots > 0 && <span class="muted"> / {count(queue.slots)}</span>}</td>
      <td class="right number">{queue.waiting > 0 ? <span class="badge warn">{count(queue.waiting)}</span> : '0'}</td>
      <td class="right number">{latency ? duration(latency[1] / 1000) : '–'}</td>
      <td class="right number">{latency ? duration(latency[2] / 1000) : '–'}</td>
    </tr>
  );
}
