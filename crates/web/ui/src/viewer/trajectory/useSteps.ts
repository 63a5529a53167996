import { useEffect } from 'preact/hooks';
import { screenshot } from '../data/api';
import { parse, type TrajectoryId } from '../data/route';
import type { Trajectory } from '../data/types';

/** Returns the step in the query, limited to existing steps. URLs count steps from 1. */
export function stepOf(query: URLSearchParams, steps: number): number {
  const requested = Number(query.get('step') ?? '1');
  return Math.max(0, Math.min(steps - 1, Number.isInteger(requested) ? requested - 1 : 0));
}

/** Returns the step in the current URL, because keys can be pressed faster than the page renders. */
export const stepNow = (steps: number): number => stepOf(parse(location.hash).query, steps);

/** Preloads the screenshots of the previous and next step. */
export function usePreload(id: TrajectoryId, trajectory: Trajectory | null, step: number): void {
  useEffect(() => {
    for (const next of [step + 1, step - 1]) {
      if (trajectory?.steps[next]?.screenshot_problem === null) new Image().src = screenshot(id, next);
    }
  }, [trajectory, step]);
}
