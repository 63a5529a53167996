// The current page of the viewer, stored in the URL fragment: such a link can be shared, works under any path prefix, and is
// never sent to a server.

import type { IterationId, Split } from './types';

export interface TrajectoryId extends IterationId {
  key: string;
}

export type Route =
  | { page: 'iterations' }
  | { page: 'plots' }
  | ({ page: 'table' } & IterationId)
  | ({ page: 'trajectory' } & TrajectoryId)
  | { page: 'compare'; left: TrajectoryId; right: TrajectoryId };

export interface Location {
  route: Route;
  query: URLSearchParams;
}

function iterationId(split: string | undefined, iteration: string | undefined): IterationId | null {
  if ((split !== 'train' && split !== 'test') || iteration === undefined || !/^\d{1,15}$/.test(iteration)) return null;
  return { split: split as Split, iteration: Number(iteration) };
}

function trajectoryId(parts: (string | undefined)[]): TrajectoryId | null {
  const [split, iteration, key] = parts;
  const found = iterationId(split, iteration);
  return found && key !== undefined && /^-?\d+(~\d+)?$/.test(key) ? { ...found, key } : null;
}

/** Parses a URL fragment. Unknown fragments lead to the list of iterations. */
export function parse(hash: string): Location {
  const [path = '', search = ''] = hash.replace(/^#/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean);
  const query = new URLSearchParams(search);
  const first = parts[0];
  if (first === 'plots') return { route: { page: 'plots' }, query };
  if (first === 'compare') {
    const left = trajectoryId(parts.slice(1, 4));
    const right = trajectoryId(parts.slice(4, 7));
    if (left && right) return { route: { page: 'compare', left, right }, query };
  }
  const trajectory = trajectoryId(parts);
  if (trajectory) return { route: { page: 'trajectory', ...trajectory }, query };
  const table = iterationId(parts[0], parts[1]);
  if (table) return { route: { page: 'table', ...table }, query };
  return { route: { page: 'iterations' }, query };
}

const path = ({ split, iteration, key }: TrajectoryId): string => `${split}/${iteration}/${key}`;

/** Returns the link to a page. */
export function link(route: Route, query?: URLSearchParams): string {
  const search = query?.toString();
  const tail = search ? `?${search}` : '';
  switch (route.page) {
    case 'iterations': return `#/${tail}`;
    case 'plots': return `#/plots${tail}`;
    case 'table': return `#/${route.split}/${route.iteration}${tail}`;
    case 'trajectory': return `#/${path(route)}${tail}`;
    case 'compare': return `#/compare/${path(route.left)}/${path(route.right)}${tail}`;
  }
}

/** Returns a query with some values changed; empty values are removed. */
export function changed(query: URLSearchParams, changes: Record<string, string | null>): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  }
  return next;
}
