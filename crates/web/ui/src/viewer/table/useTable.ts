import { tableOf, useLoaded, type Loaded } from '../data/api';
import type { Place, Table } from '../data/types';

const kept = new Map<string, Table>();

/** The table of an iteration; while its run goes on it is asked for again. What was read stays for the other pages. */
export function useTable(place: Place): Loaded<Table> {
  const name = `${place.split}/${place.iteration}`;
  const loaded = useLoaded(name, async (signal) => {
    const table = await tableOf(place, signal);
    // The same as before: the same object, so that nothing is drawn again.
    const before = kept.get(name);
    if (before?.version === table.version) return before;
    kept.set(name, table);
    return table;
  }, (table) => (table.is_finished ? null : 3));
  return loaded.value ? loaded : { ...loaded, value: kept.get(name) ?? null };
}
