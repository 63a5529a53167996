import { useState } from 'preact/hooks';
import { Foreign } from '../common/Foreign';
import { count } from '../common/format';
import { wordsOf } from './cells';
import type { Tasks } from './store';

const PAGE = 100;

/** The same tasks as text, a page at a time. */
export function TaskTable({ codes, places, tasks, open }: { codes: Uint16Array; places: number[]; tasks: Tasks | null; open: (place: number) => void }) {
  const [first, setFirst] = useState(0);
  const from = Math.min(first, Math.max(0, Math.floor((places.length - 1) / PAGE) * PAGE));
  const shown = places.slice(from, from + PAGE);
  return (
    <div class="task-table">
      <div class="scroll" tabIndex={0} role="region" aria-label="Tasks as a table">
        <table>
          <thead><tr><th scope="col">Task</th><th scope="col">State</th><th scope="col">Domain</th><th scope="col">Difficulty</th><th scope="col">What to do</th></tr></thead>
          <tbody>
            {shown.map((place) => (
              <tr key={place}>
                <td><button type="button" onClick={() => open(place)}>{tasks?.index[place] ?? place}</button></td>
                <td>{wordsOf(codes[place] ?? 0)}</td>
                <td><Foreign text={tasks?.domain.names[tasks.domain.of[place] ?? -1]} /></td>
                <td class="number">{tasks?.difficulty[place]}</td>
                <td><Foreign text={tasks?.name[place]} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="pager small">
        <button type="button" disabled={from === 0} onClick={() => setFirst(from - PAGE)}>Earlier</button>{' '}
        {places.length === 0 ? 'No task passes the filter' : `${count(from + 1)}–${count(from + shown.length)} of ${count(places.length)}`}{' '}
        <button type="button" disabled={from + PAGE >= places.length} onClick={() => setFirst(from + PAGE)}>Later</button>
      </p>
    </div>
  );
}
