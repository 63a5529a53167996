import { describe, expect, it } from 'vitest';
import { describeNetwork } from './network';

describe('the network summary', () => {
  it('is one line', () => {
    const none = { exact: 0, normalised: 0, scored: 0, missed: 0 };
    const matches = { exact: 1041, normalised: 3, scored: 1, missed: 2 };
    expect(describeNetwork({ matches, recorded: 0 })).toBe('replay: 1,041 exact, 3 normalised, 1 scored, 2 missed');
    expect(describeNetwork({ matches: none, recorded: 1 })).toBe('recorded: 1 request');
    expect(describeNetwork({ matches, recorded: 2 })).toContain('2 missed; recorded: 2 requests');
    expect(describeNetwork({ matches: none, recorded: 0 })).toBe('no requests');
  });
});
