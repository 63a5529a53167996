// What the page says about a loop. Pure functions; see summary.test.ts.

import type { Loop, Phase, Split, Success } from './types';

export interface Notice { tone: 'good' | 'bad' | 'warn' | ''; label: string; text: string | null }

const RESUME = 'Continue with the same command and --resume.';

/** Returns whether a process works on the loop, as far as is known. */
export const isAlive = (loop: Loop): boolean => loop.status === 'running' && loop.liveness?.state === 'alive';

/** Describes the state of a loop in a word and, if something needs attention, in a sentence. */
export function describe(loop: Loop): Notice {
  const process = loop.liveness?.process === undefined ? 'its process' : `process ${loop.liveness.process} on ${loop.liveness.host}`;
  switch (loop.status) {
    case 'finished': return { tone: 'good', label: 'finished', text: null };
    case 'stopped': return { tone: 'warn', label: 'stopped', text: `The loop was stopped on request. ${RESUME}` };
    case 'failed': return { tone: 'bad', label: 'failed', text: `The loop failed: ${loop.reason ?? 'its log has the reason'}\nFix the cause. ${RESUME}` };
    case 'running':
  }
  switch (loop.liveness?.state) {
    case 'alive': return { tone: 'good', label: 'running', text: null };
    case 'gone': return { tone: 'bad', label: 'killed', text: `The loop did not end by itself: ${process} does not exist any more. ${RESUME}` };
    case 'silent': return { tone: 'bad', label: 'no heartbeat', text: `The loop does not answer: ${process} has sent no heartbeat for more than 20 seconds. If it was killed, use --resume.` };
    default: return { tone: 'warn', label: 'waiting for a heartbeat', text: null };
  }
}

/** Returns the seconds that a phase took, or has taken until now. Unknown for a phase whose loop was killed. */
export function phaseSeconds(phase: Phase, now: number, alive: boolean): number | null {
  if (phase.started_at === null || phase.status === 'skipped') return null;
  if (phase.status === 'running') return alive ? Math.max(0, now - phase.started_at) : null;
  return phase.ended_at === null ? null : Math.max(0, phase.ended_at - phase.started_at);
}

/** Returns the number of iterations that have trained a checkpoint or ended without one, of all that are planned. */
export function progress(loop: Loop): { done: number; planned: number } {
  const trains = loop.iterations.filter((iteration) => iteration.phases.some(({ phase }) => phase === 'switch'));
  const over = trains.filter((iteration) => iteration.phases.every(({ status }) => status === 'done' || status === 'skipped'));
  return { done: loop.earlier_iterations + over.length, planned: loop.iterations_planned };
}

/** Returns the seconds of the last iterations from their first to their last phase, on average. */
export function secondsPerIteration(loop: Loop, last = 5): number | null {
  const spans = loop.iterations.flatMap(({ phases }) => {
    const start = phases[0]?.started_at;
    const end = phases.at(-1)?.phase === 'switch' ? phases.at(-1)?.ended_at : null;
    return start && end && end > start ? [end - start] : [];
  });
  const recent = spans.slice(-last);
  return recent.length ? recent.reduce((sum, span) => sum + span, 0) / recent.length : null;
}

export const ofSplit = (success: Success[], split: Split): Success[] => success.filter((one) => one.split === split && one.scored > 0);

export const rate = (success: Success): number => success.successes / success.scored;

/** Returns the last part of the path or name of a model. */
export const modelName = (model: string): string => model.replace(/\/+$/, '').split('/').at(-1) || model;
