// What was recorded or replayed of an episode, as text. Pure functions; see network.test.ts.

import { count } from './format';

export interface MatchCounts { exact: number; normalised: number; scored: number; missed: number }

export interface NetworkSummary {
  matches: MatchCounts;
  misses?: { method: string; url: string; score?: number }[];
  recorded: number;
}

export const totalMatches = ({ exact, normalised, scored, missed }: MatchCounts): number => exact + normalised + scored + missed;

/** Returns one line, such as "replay: 41 exact, 3 normalised, 1 scored, 2 missed". */
export function describeNetwork({ matches, recorded }: NetworkSummary): string {
  const parts: string[] = [];
  if (totalMatches(matches) > 0) {
    parts.push(`replay: ${count(matches.exact)} exact, ${count(matches.normalised)} normalised, ${count(matches.scored)} scored, ${count(matches.missed)} missed`);
  }
  if (recorded > 0) parts.push(`recorded: ${count(recorded)} ${recorded === 1 ? 'request' : 'requests'}`);
  return parts.join('; ') || 'no requests';
}
