import type { Step } from '../data/types';

export interface Timing {
  stage: string;
  milliseconds: number;
}

/** What was measured of a step, in the order it was recorded. */
export function timings(step: Step): Timing[] {
  return Object.entries(step.timings_ms)
    .filter((entry): entry is [string, number] => typeof entry[1] === 'number' && Number.isFinite(entry[1]) && entry[1] >= 0)
    .map(([stage, milliseconds]) => ({ stage, milliseconds }));
}

export const total = (step: Step): number => timings(step).reduce((sum, { milliseconds }) => sum + milliseconds, 0);
