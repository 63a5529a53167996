import { describe, expect, it } from 'vitest';
import { decode, difficultyOf, kindOf, patch, cellText, unpack, describeCell } from './cells';

const POLICY_STEP_5 = 6 | (5 << 7);
const SOLVED = 11 | (1 << 4) | (8 << 7);
const MISSED = 12 | (7 << 4) | (3 << 7);
const UNSOLVED = 11 | (2 << 4) | (8 << 7);

describe('a cell', () => {
  it('is decoded as the server encodes it', () => {
    expect(decode(POLICY_STEP_5)).toEqual({ stage: 6, outcome: '', step: 5 });
    expect([POLICY_STEP_5, SOLVED, UNSOLVED, 0, 1, 12].map(kindOf)).toEqual(['policy', 'success', 'unsolved', 'idle', 'waiting', 'lost']);
    expect([POLICY_STEP_5, SOLVED, 0, 1, 2 | (3 << 7), 12].map(cellText)).toEqual(['5a', 'F', 'N', 'W', '3n', 'X']);
  });
  it('has a description', () => {
    expect([POLICY_STEP_5, SOLVED, 0].map(describeCell)).toEqual(['step 5, policy', 'finished, success, 8 steps', 'not started']);
    expect(describeCell(MISSED)).toBe('failed, not in the archive, 3 steps');
  });
  it('tolerates unknown codes', () => {
    expect([kindOf(15), cellText(14), decode(0xffff).outcome]).toEqual(['idle', 'N', 'replay_miss']);
  });
});

describe('the grid', () => {
  it('is unpacked and patched', () => {
    const codes = unpack(btoa('\x01\x00\x06\x02\x00\x00'));
    expect([...codes]).toEqual([1, 0x206, 0]);
    patch(codes, [0, 2, 9], [7, 8, 9]);
    expect([...codes]).toEqual([7, 0x206, 8]);
  });
  it('classifies difficulties like the sampler', () => {
    expect([1, 3, 4, 6, 7].map(difficultyOf)).toEqual(['easy', 'easy', 'medium', 'medium', 'hard']);
  });
});
