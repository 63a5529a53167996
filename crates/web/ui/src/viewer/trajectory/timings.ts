import type { Step } from '../data/types';

export interface Timing {
  stage: string;
  milliseconds: number;
}

/** Returns the recorded durations of a step in their order. */
export function timings(step: Step): Timing[] {
  return Object.entries(step.timings_ms)
    .filter((entry): entry is [string, number] => typeof entry[1] === 'number' && Number.isFinite(entry[1]) && entry[1] >= 0)
    .map(([stage, milliseconds]) => ({ stage, milliseconds }));
}

export const total = (step: Step): number => timings(step).reduce((sum, { milliseconds }) => sum + milliseconds, 0);
