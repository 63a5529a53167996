import { describe as group, expect, it } from 'vitest';
import { describe, modelName, ofSplit, phaseSeconds, progress, secondsPerIteration } from './summary';
import { PHASES, type Iteration, type Loop, type Phase } from './types';

const phase = (values: Partial<Phase>): Phase => ({ phase: 'train', status: 'done', failures: 0, started_at: 100, ended_at: 160, reason: null, ...values });
const iteration = (number: number, values: Partial<Phase>): Iteration => ({
  number, model: 'base', checkpoint: null, rollbacks: 0, phases: PHASES.map((name) => phase({ phase: name, ...values })),
});
const loop = (values: Partial<Loop>): Loop => ({
  status: 'running', liveness: { state: 'alive', host: 'here', process: 7 }, reason: null, first_iteration: 0, iterations_planned: 3,
  iterations: [], earlier_iterations: 0, activity: null, checkpoint: null, failure: null, dead_ranks: [], success: [], ...values,
});

group('describe', () => {
  it('tells a killed loop from a running one', () => {
    expect(describe(loop({})).label).toBe('running');
    const killed = describe(loop({ liveness: { state: 'gone', host: 'here', process: 7 } }));
    expect(killed.label).toBe('killed');
    expect(killed.text).toContain('process 7 on here');
    expect(killed.text).toContain('--resume');
    expect(describe(loop({ liveness: { state: 'silent', host: 'there', process: 8 } })).text).toContain('process 8 on there');
    expect(describe(loop({ liveness: { state: 'unknown' } })).tone).toBe('warn');
  });
  it('gives the reason of a failure', () => {
    expect(describe(loop({ status: 'failed', liveness: null, reason: 'no memory' })).text).toContain('no memory');
    expect(describe(loop({ status: 'finished', liveness: null }))).toEqual({ tone: 'good', label: 'finished', text: null });
  });
});

group('phaseSeconds', () => {
  it('counts running phases of living loops only', () => {
    expect(phaseSeconds(phase({}), 500, true)).toBe(60);
    const running = phase({ status: 'running', ended_at: null });
    expect(phaseSeconds(running, 130, true)).toBe(30);
    expect(phaseSeconds(running, 90, true)).toBe(0);
    expect(phaseSeconds(running, 130, false)).toBeNull();
    expect(phaseSeconds(phase({ status: 'skipped' }), 500, true)).toBeNull();
    expect(phaseSeconds(phase({ status: 'pending', started_at: null, ended_at: null }), 500, true)).toBeNull();
  });
});

group('progress', () => {
  it('counts iterations that are over', () => {
    const closing = { ...iteration(3, {}), phases: [phase({ phase: 'serve' })] };
    const iterations = [iteration(0, {}), iteration(1, { status: 'skipped' }), iteration(2, { status: 'pending' }), closing];
    expect(progress(loop({ iterations, earlier_iterations: 5 }))).toEqual({ done: 7, planned: 3 });
  });
  it('measures complete iterations', () => {
    expect(secondsPerIteration(loop({ iterations: [iteration(0, {}), iteration(1, { ended_at: 200 }), iteration(2, { ended_at: null })] }))).toBe(80);
    expect(secondsPerIteration(loop({}))).toBeNull();
  });
});

group('small parts', () => {
  it('select and shorten', () => {
    const success = [{ split: 'train' as const, iteration: 0, scored: 4, successes: 1 }, { split: 'test' as const, iteration: 0, scored: 0, successes: 0 }];
    expect(ofSplit(success, 'train')).toHaveLength(1);
    expect(ofSplit(success, 'test')).toHaveLength(0);
    expect(modelName('/runs/a/checkpoints/iteration_2/')).toBe('iteration_2');
    expect(modelName('org/Model-8B')).toBe('Model-8B');
  });
});
