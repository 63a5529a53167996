import { Foreign } from '../common/Foreign';
import { count } from '../common/format';
import type { FarmNode } from './store';

/** The browsers, node by node: how many slots are used, free, starting, dead. */
export function Farm({ nodes }: { nodes: FarmNode[] | null }) {
  return (
    <section class="card">
      <h2>Browsers by node</h2>
      {nodes === null && <p class="muted small">The farm has not told yet.</p>}
      {nodes?.length === 0 && <p class="muted small">The farm has no nodes.</p>}
      <ul class="nodes">
        {nodes?.map((node) => <Node key={node.name} node={node} />)}
      </ul>
    </section>
  );
}

function Node({ node }: { node: FarmNode }) {
  const share = (part: number) => ({ width: `${node.capacity ? (100 * part) / node.capacity : 0}%` });
  const words = [`${count(node.in_use)} in use`, `${count(node.available)} free`];
  if (node.starting) words.push(`${count(node.starting)} starting`);
  if (node.dead) words.push(`${count(node.dead)} dead`);
  return (
    <li>
      <div class="node-name">
        <Foreign text={node.name} class="mono" />
        {!node.healthy && <span class="badge bad">does not answer</span>}
      </div>
      <div class="bar" aria-hidden="true">
        <span class="kind-policy" style={share(node.in_use)} />
        <span class="kind-waiting" style={share(node.starting)} />
        <span class="kind-lost" style={share(node.dead)} />
      </div>
      <p class="muted small number">{words.join(' · ')} · {count(node.capacity)} slots</p>
    </li>
  );
}
