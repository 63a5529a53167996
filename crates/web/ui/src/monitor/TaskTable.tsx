import { useState } from 'preact/hooks';
import { UntrustedText } from '../common/UntrustedText';
import { count } from '../common/format';
import { describeCell } from './cells';
import type { Tasks } from './store';

const PAGE_SIZE = 100;

/** The tasks as a table, one page at a time. */
export function TaskTable({ codes, positions, tasks, open }: { codes: Uint16Array; positions: number[]; tasks: Tasks | null; open: (position: number) => void }) {
  const [first, setFirst] = useState(0);
  const from = Math.min(first, Math.max(0, Math.floor((positions.length - 1) / PAGE_SIZE) * PAGE_SIZE));
  const shown = positions.slice(from, from + PAGE_SIZE);
  return (
    <div class="task-table">
      <div class="scroll" tabIndex={0} role="region" aria-label="Tasks as a table">
        <table>
          <thead><tr><th scope="col">Task</th><th scope="col">State</th><th scope="col">Domain</th><th scope="col">Difficulty</th><th scope="col">Description</th></tr></thead>
          <tbody>
            {shown.map((position) => (
              <tr key={position}>
                <td><button type="button" onClick={() => open(position)}>{tasks?.index[position] ?? position}</button></td>
                <td>{describeCell(codes[position] ?? 0)}</td>
                <td><UntrustedText text={tasks?.domain.names[tasks.domain.of[position] ?? -1]} /></td>
                <td class="number">{tasks?.difficulty[position]}</td>
                <td><UntrustedText text={tasks?.name[position]} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="pager small">
        <button type="button" disabled={from === 0} onClick={() => setFirst(from - PAGE_SIZE)}>Previous</button>{' '}
        {positions.length === 0 ? 'No task matches the filter' : `${count(from + 1)}–${count(from + shown.length)} of ${count(positions.length)}`}{' '}
        <button type="button" disabled={from + PAGE_SIZE >= positions.length} onClick={() => setFirst(from + PAGE_SIZE)}>Next</button>
      </p>
    </div>
  );
}
