import { useEffect } from 'preact/hooks';
import { screenshot } from '../data/api';
import { parse, type Where } from '../data/route';
import type { Trajectory } from '../data/types';

/** The step that an address names, kept within what there is. Addresses count from 1, as people do. */
export function stepOf(query: URLSearchParams, steps: number): number {
  const asked = Number(query.get('step') ?? '1');
  return Math.max(0, Math.min(steps - 1, Number.isInteger(asked) ? asked - 1 : 0));
}

/** The step that the address names now. Keys come faster than pages are drawn, and none of them may be lost. */
export const stepNow = (steps: number): number => stepOf(parse(location.hash).query, steps);

/** Fetches the neighbours' screenshots, so that going on shows them at once. */
export function usePreload(where: Where, trajectory: Trajectory | null, step: number): void {
  useEffect(() => {
    for (const next of [step + 1, step - 1]) {
      if (trajectory?.steps[next]?.screenshot_problem === null) new Image().src = screenshot(where, next);
    }
  }, [trajectory, step]);
}
