import { UntrustedText } from '../common/UntrustedText';
import { count } from '../common/format';
import type { FarmNode } from './store';

/** The slots of each node: in use, free, starting, dead. */
export function Farm({ nodes }: { nodes: FarmNode[] | null }) {
  return (
    <section class="card">
      <h2>Browsers by node</h2>
      {nodes === null && <p class="muted small">Waiting for the status of the farm.</p>}
      {nodes?.length === 0 && <p class="muted small">The farm has no nodes.</p>}
      <ul class="nodes">
        {nodes?.map((node) => <Node key={node.name} node={node} />)}
      </ul>
    </section>
  );
}

function Node({ node }: { node: FarmNode }) {
  const width = (part: number) => ({ width: `${node.capacity ? (100 * part) / node.capacity : 0}%` });
  const parts = [`${count(node.in_use)} in use`, `${count(node.available)} free`];
  if (node.starting) parts.push(`${count(node.starting)} starting`);
  if (node.dead) parts.push(`${count(node.dead)} dead`);
  return (
    <li>
      <div class="node-name">
        <UntrustedText text={node.name} class="mono" />
        {!node.healthy && <span class="badge bad">not responding</span>}
      </div>
      <div class="bar" aria-hidden="true">
        <span class="kind-policy" style={width(node.in_use)} />
        <span class="kind-waiting" style={width(node.starting)} />
        <span class="kind-lost" style={width(node.dead)} />
      </div>
      <p class="muted small number">{parts.join(' · ')} · {count(node.capacity)} slots</p>
    </li>
  );
}
