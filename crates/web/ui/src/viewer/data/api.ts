// The API of the server, and a hook that loads its data.

import { useEffect, useState } from 'preact/hooks';
import { address, getJson } from '../../common/api';
import type { TrajectoryId } from './route';
import { plotQuery, type PlotOptions } from '../plots/options';
import type { Charts, Contents, Overview, IterationId, Recording, Sibling, Table, Trajectory } from './types';

const iteration = ({ split, iteration }: IterationId): string => `api/iterations/${split}/${iteration}`;
const trajectory = (id: TrajectoryId): string => `${iteration(id)}/trajectories/${encodeURIComponent(id.key)}`;

export const contents = (signal: AbortSignal) => getJson<Contents>('api/iterations', signal);
export const overview = (id: IterationId, signal: AbortSignal) => getJson<Overview>(iteration(id), signal);
export const tableOf = (id: IterationId, signal: AbortSignal) => getJson<Table>(`${iteration(id)}/trajectories`, signal);
export const trajectoryAt = (id: TrajectoryId, signal: AbortSignal) => getJson<Trajectory>(trajectory(id), signal);
export const siblingsOf = (id: TrajectoryId, signal: AbortSignal) => getJson<Sibling[]>(`${trajectory(id)}/siblings`, signal);
export const charts = (options: PlotOptions, signal: AbortSignal) => getJson<Charts>(address('api/curves', plotQuery(options)), signal);
export const screenshot = (id: TrajectoryId, step: number): string => `${trajectory(id)}/steps/${step}/screenshot`;
export const recordingOf = (id: TrajectoryId, signal: AbortSignal) => getJson<Recording>(`${trajectory(id)}/recording`, signal);
export const recordingFrame = (id: TrajectoryId, frame: number): string => `${trajectory(id)}/recording/frames/${frame}`;
export const recordingFile = (id: TrajectoryId, name: string): string => `${trajectory(id)}/recording/files/${name}`;
export const plotFile = (kind: 'svg' | 'png', options: PlotOptions): string => address(`api/plots.${kind}`, plotQuery(options));

export interface Loaded<T> {
  value: T | null;
  error: string | null;
}

/** Compares loaded values, so that unchanged data does not cause a render. */
const isSame = (a: unknown, b: unknown): boolean => a === b || (a !== null && JSON.stringify(a) === JSON.stringify(b));

/** Loads a value whenever `name` changes. `refreshSeconds` returns after how many seconds to load it again, or null. */
export function useLoaded<T>(name: string, request: (signal: AbortSignal) => Promise<T>, refreshSeconds?: (value: T) => number | null): Loaded<T> {
  const [state, setState] = useState<Loaded<T> & { name: string }>({ name, value: null, error: null });
  useEffect(() => {
    const control = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      const started = performance.now();
      try {
        const value = await request(control.signal);
        if (control.signal.aborted) return;
        setState((before) => (before.name === name && before.error === null && isSame(before.value, value) ? before : { name, value, error: null }));
        // Reading a large journal takes long: wait at least ten times as long as the last request took.
        const seconds = refreshSeconds?.(value);
        if (seconds) timer = setTimeout(() => void load(), Math.max(seconds * 1000, 10 * (performance.now() - started)));
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
