import { difficultyOf, kindOf, type Difficulty, type Kind } from './cells';
import type { Tasks } from './store';

/** Which cells are shown. An empty value means all. */
export interface Filter {
  kinds: Kind[];
  domain: string;
  difficulty: Difficulty | '';
  text: string;
}

export const NO_FILTER: Filter = { kinds: [], domain: '', difficulty: '', text: '' };

export const isFiltering = (filter: Filter): boolean =>
  filter.kinds.length > 0 || filter.domain !== '' || filter.difficulty !== '' || filter.text.trim() !== '';

/** Returns the positions of the cells that match the filter, in order. */
export function visible(filter: Filter, codes: Uint16Array, tasks: Tasks | null): number[] {
  const kinds = new Set<Kind>(filter.kinds);
  const domain = tasks && filter.domain ? tasks.domain.names.indexOf(filter.domain) : -1;
  const text = filter.text.trim().toLowerCase();
  const positions: number[] = [];
  for (let position = 0; position < codes.length; position++) {
    if (kinds.size > 0 && !kinds.has(kindOf(codes[position] ?? 0))) continue;
    if (filter.domain && tasks?.domain.of[position] !== domain) continue;
    if (filter.difficulty && (!tasks || difficultyOf(tasks.difficulty[position] ?? 0) !== filter.difficulty)) continue;
    if (text && !(tasks && matchesText(tasks, position, text))) continue;
    positions.push(position);
  }
  return positions;
}

function matchesText(tasks: Tasks, position: number, search: string): boolean {
  const website = tasks.website.names[tasks.website.of[position] ?? -1] ?? '';
  return [tasks.name[position], tasks.id[position], website].some((text) => text?.toLowerCase().includes(search));
}

/** Counts the cells of each kind. */
export function countKinds(codes: Uint16Array): Map<Kind, number> {
  const counts = new Map<Kind, number>();
  for (const code of codes) {
    const kind = kindOf(code);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}
