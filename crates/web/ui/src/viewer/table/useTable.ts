import { tableOf, useLoaded, type Loaded } from '../data/api';
import type { IterationId, Table } from '../data/types';

const cached = new Map<string, Table>();

/** Loads the table of an iteration, and reloads it while its run is in progress. Keeps it for the other pages. */
export function useTable(id: IterationId): Loaded<Table> {
  const name = `${id.split}/${id.iteration}`;
  const loaded = useLoaded(name, async (signal) => {
    const table = await tableOf(id, signal);
    // Return the same object for the same version, so that nothing is rendered again.
    const before = cached.get(name);
    if (before?.version === table.version) return before;
    cached.set(name, table);
    return table;
  }, (table) => (table.is_finished ? null : 3));
  return loaded.value ? loaded : { ...loaded, value: cached.get(name) ?? null };
}
