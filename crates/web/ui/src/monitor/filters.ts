import { difficultyOf, kindOf, type Difficulty, type Kind } from './cells';
import type { Tasks } from './store';

/** Which cells are shown. Empty means all. */
export interface Filter {
  kinds: Kind[];
  domain: string;
  difficulty: Difficulty | '';
  words: string;
}

export const EVERYTHING: Filter = { kinds: [], domain: '', difficulty: '', words: '' };

export const isFiltering = (filter: Filter): boolean =>
  filter.kinds.length > 0 || filter.domain !== '' || filter.difficulty !== '' || filter.words.trim() !== '';

/** The places that pass, in order. */
export function visible(filter: Filter, codes: Uint16Array, tasks: Tasks | null): number[] {
  const kinds = new Set<Kind>(filter.kinds);
  const domain = tasks && filter.domain ? tasks.domain.names.indexOf(filter.domain) : -1;
  const words = filter.words.trim().toLowerCase();
  const places: number[] = [];
  for (let place = 0; place < codes.length; place++) {
    if (kinds.size > 0 && !kinds.has(kindOf(codes[place] ?? 0))) continue;
    if (filter.domain && tasks?.domain.of[place] !== domain) continue;
    if (filter.difficulty && (!tasks || difficultyOf(tasks.difficulty[place] ?? 0) !== filter.difficulty)) continue;
    if (words && !(tasks && mentions(tasks, place, words))) continue;
    places.push(place);
  }
  return places;
}

function mentions(tasks: Tasks, place: number, words: string): boolean {
  const website = tasks.website.names[tasks.website.of[place] ?? -1] ?? '';
  return [tasks.name[place], tasks.id[place], website].some((text) => text?.toLowerCase().includes(words));
}

/** How many cells there are of each kind. */
export function countKinds(codes: Uint16Array): Map<Kind, number> {
  const counts = new Map<Kind, number>();
  for (const code of codes) {
    const kind = kindOf(code);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}
