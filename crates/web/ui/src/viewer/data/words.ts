// Names of the server in words of people, and which colour they have.

const OUTCOMES: Record<string, { words: string; tone: '' | 'good' | 'bad' | 'warn' }> = {
  success: { words: 'success', tone: 'good' },
  failure: { words: 'failure', tone: 'bad' },
  blocked: { words: 'blocked', tone: 'warn' },
  infra_lost: { words: 'infra lost', tone: 'warn' },
  judge_error: { words: 'not judged', tone: 'warn' },
  cancelled: { words: 'cancelled', tone: '' },
  running: { words: 'running', tone: '' },
};

export const outcomeWords = (outcome: string): string => OUTCOMES[outcome]?.words ?? outcome;
export const outcomeTone = (outcome: string): string => OUTCOMES[outcome]?.tone ?? '';

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** How long ago, in seconds since 1970. */
export function ago(then: number, now = Date.now() / 1000): string {
  const seconds = Math.max(0, now - then);
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(then * 1000).toISOString().slice(0, 10);
}
