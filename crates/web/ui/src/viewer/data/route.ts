// Where in the viewer we are, written into the part of the address behind the '#': it can be shared, works under any
// path prefix, and never reaches a server.

import type { Place, Split } from './types';

export interface Where extends Place {
  key: string;
}

export type Route =
  | { page: 'iterations' }
  | { page: 'plots' }
  | ({ page: 'table' } & Place)
  | ({ page: 'trajectory' } & Where)
  | { page: 'compare'; left: Where; right: Where };

export interface Location {
  route: Route;
  query: URLSearchParams;
}

function place(split: string | undefined, iteration: string | undefined): Place | null {
  if ((split !== 'train' && split !== 'test') || iteration === undefined || !/^\d{1,15}$/.test(iteration)) return null;
  return { split: split as Split, iteration: Number(iteration) };
}

function where(parts: (string | undefined)[]): Where | null {
  const [split, iteration, key] = parts;
  const found = place(split, iteration);
  return found && key !== undefined && /^-?\d+(~\d+)?$/.test(key) ? { ...found, key } : null;
}

/** Reads what follows the '#'. Anything unknown is the list of iterations. */
export function parse(hash: string): Location {
  const [path = '', search = ''] = hash.replace(/^#/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean);
  const query = new URLSearchParams(search);
  const first = parts[0];
  if (first === 'plots') return { route: { page: 'plots' }, query };
  if (first === 'compare') {
    const left = where(parts.slice(1, 4));
    const right = where(parts.slice(4, 7));
    if (left && right) return { route: { page: 'compare', left, right }, query };
  }
  const trajectory = where(parts);
  if (trajectory) return { route: { page: 'trajectory', ...trajectory }, query };
  const table = place(parts[0], parts[1]);
  if (table) return { route: { page: 'table', ...table }, query };
  return { route: { page: 'iterations' }, query };
}

const path = ({ split, iteration, key }: Where): string => `${split}/${iteration}/${key}`;

/** The link to a place. */
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

/** The same query with some of it changed; empty values are left out. */
export function changed(query: URLSearchParams, changes: Record<string, string | null>): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  }
  return next;
}
