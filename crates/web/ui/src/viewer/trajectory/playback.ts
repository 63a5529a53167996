// Which frame and which messages of a recording are shown at a time.

import type { Recording } from '../data/types';

/** Returns the number of the last frame at or before a time; the first frame before it. */
export function frameAt(frames: Recording['frames'], time: number): number {
  let [low, high] = [0, frames.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((frames[middle]?.[0] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** Returns the messages up to a time, at most the last `max`. */
export function messagesAt(messages: Recording['console'], time: number, max: number): Recording['console'] {
  return messages.filter((message) => message.time <= time).slice(-max);
}

/** Returns the step whose screenshot is the last one at or before a time; null before the first. */
export function stepAt(steps: number[], time: number): number | null {
  const later = steps.findIndex((start) => start > time);
  const found = (later < 0 ? steps.length : later) - 1;
  return found < 0 ? null : found;
}
