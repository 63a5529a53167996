import { UntrustedText } from '../../common/UntrustedText';
import { count, percent } from '../../common/format';
import { overview, useLoaded } from '../data/api';
import { link } from '../data/route';
import { totalMatches } from '../../common/network';
import type { CoverageGroup, Overview, IterationId } from '../data/types';
import { ago, bytes, outcomeLabel } from '../data/labels';

function Outcomes({ outcomes, total }: { outcomes: Overview['outcomes']; total: number }) {
  const present = outcomes.filter(([, number]) => number > 0);
  const description = present.map(([name, number]) => `${outcomeLabel(name)} ${number}`).join(', ');
  return (
    <span class="stack" role="img" aria-label={description || 'none'} title={description}>
      {present.map(([name, number]) => (
        <span key={name} class={`part outcome-${name}`} style={{ flexGrow: number / total }} />
      ))}
    </span>
  );
}

function MetricCells({ value }: { value: Overview }) {
  const { overall } = value;
  return (
    <>
      <td class="number">
        {count(value.trajectories)}
        {value.announced !== null && <span class="muted"> of {count(value.announced)}</span>}
        {!value.is_finished && <span class="badge warn">unfinished</span>}
      </td>
      <td class="number"><strong>{percent(overall.success_rate * overall.scored, overall.scored)}</strong></td>
      <td><Outcomes outcomes={value.outcomes} total={Math.max(1, value.trajectories)} /></td>
      <td class="small number">
        {value.by_difficulty.map(({ name, success_rate, scored }) => <span key={name} class="class-rate">{name} {percent(success_rate * scored, scored)}</span>)}
      </td>
      <td class="number">{overall.avg_steps.toFixed(1)}</td>
      <td class="number">{percent(overall.crashed_rate, 1)}</td>
      <td class="number">{percent(overall.blocked_rate, 1)}</td>
      <td class="model"><UntrustedText text={value.metadata?.solution_model ?? '–'} /></td>
      <td class="small muted">{ago(value.changed)}, {bytes(value.bytes)}</td>
    </>
  );
}

/** How archives answered the requests of replayed episodes, in total and by website. */
function Coverage({ coverage }: { coverage: NonNullable<Overview['coverage']> }) {
  const shares = (group: CoverageGroup) => {
    const total = totalMatches(group);
    return `${percent(group.exact, total)} exact, ${percent(group.normalised, total)} normalised, ${percent(group.scored, total)} scored, ${percent(group.missed, total)} missed of ${count(total)} requests`;
  };
  return (
    <details>
      <summary>Replay: {shares(coverage.overall)}</summary>
      <ul>{coverage.by_site.map((group) => <li key={group.name}><UntrustedText text={group.name} />: {shares(group)}</li>)}</ul>
    </details>
  );
}

/** One iteration. Its metrics load separately, so that a long list appears at once. */
export function IterationRow({ id }: { id: IterationId }) {
  const { value, error } = useLoaded(`${id.split}/${id.iteration}`, (signal) => overview(id, signal), (found) => (found.is_finished ? null : 10));
  return (
    <>
      <tr>
        <th scope="row"><a href={link({ page: 'table', ...id })}>{id.split} {id.iteration}</a></th>
        {value ? <MetricCells value={value} /> : <td colSpan={9} class="muted">{error ?? 'loading…'}</td>}
      </tr>
      {value?.coverage && <tr><td colSpan={10} class="small"><Coverage coverage={value.coverage} /></td></tr>}
      {value?.problems.map((problem) => (
        <tr key={problem}><td colSpan={10}><span class="notice"><UntrustedText text={problem} /></span></td></tr>
      ))}
    </>
  );
}
