// The addresses of the server's answers, and hooks that keep them while a page needs them.

import { useEffect, useState } from 'preact/hooks';
import { address, getJson } from '../../common/api';
import type { Where } from './route';
import type { Charts, Contents, Overview, Place, Sibling, Table, Trajectory } from './types';

const iteration = ({ split, iteration }: Place): string => `api/iterations/${split}/${iteration}`;
const trajectory = (where: Where): string => `${iteration(where)}/trajectories/${encodeURIComponent(where.key)}`;

export const contents = (signal: AbortSignal) => getJson<Contents>('api/iterations', signal);
export const overview = (place: Place, signal: AbortSignal) => getJson<Overview>(iteration(place), signal);
export const tableOf = (place: Place, signal: AbortSignal) => getJson<Table>(`${iteration(place)}/trajectories`, signal);
export const trajectoryAt = (where: Where, signal: AbortSignal) => getJson<Trajectory>(trajectory(where), signal);
export const siblingsOf = (where: Where, signal: AbortSignal) => getJson<Sibling[]>(`${trajectory(where)}/siblings`, signal);
export const charts = (ema: number, signal: AbortSignal) => getJson<Charts>(address('api/curves', { ema: ema || undefined }), signal);
export const screenshot = (where: Where, step: number): string => `${trajectory(where)}/steps/${step}/screenshot`;
export const plotFile = (kind: 'svg' | 'png', ema: number): string => address(`api/plots.${kind}`, { ema: ema || undefined });

export interface Loaded<T> {
  value: T | null;
  error: string | null;
}

/** What did not change is not drawn again. */
const isSame = (a: unknown, b: unknown): boolean => a === b || (a !== null && JSON.stringify(a) === JSON.stringify(b));

/** Asks whenever `name` changes. `again` says how many seconds later to ask once more, if at all. */
export function useLoaded<T>(name: string, ask: (signal: AbortSignal) => Promise<T>, again?: (value: T) => number | null): Loaded<T> {
  const [state, setState] = useState<Loaded<T> & { name: string }>({ name, value: null, error: null });
  useEffect(() => {
    const control = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      const since = performance.now();
      try {
        const value = await ask(control.signal);
        if (control.signal.aborted) return;
        setState((before) => (before.name === name && before.error === null && isSame(before.value, value) ? before : { name, value, error: null }));
        // A large journal takes a while to read: never keep the server at it all the time.
        const seconds = again?.(value);
        if (seconds) timer = setTimeout(() => void load(), Math.max(seconds * 1000, 10 * (performance.now() - since)));
      } catch (error) {
        if (control.signal.aborted) return;
        setState((before) => ({ name, value: before.name === name ? before.value : null, error: error instanceof Error ? error.message : String(error) }));
      }
    };
    void load();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [name]);
  return state.name === name ? state : { value: null, error: null };
}
