// Labels and colours of outcomes, and formats for sizes and times.

const OUTCOMES: Record<string, { label: string; tone: '' | 'good' | 'bad' | 'warn' }> = {
  success: { label: 'success', tone: 'good' },
  failure: { label: 'failure', tone: 'bad' },
  blocked: { label: 'blocked', tone: 'warn' },
  infra_lost: { label: 'infra lost', tone: 'warn' },
  judge_error: { label: 'not judged', tone: 'warn' },
  replay_miss: { label: 'not in archive', tone: 'warn' },
  cancelled: { label: 'cancelled', tone: '' },
  running: { label: 'running', tone: '' },
};

export const outcomeLabel = (outcome: string): string => OUTCOMES[outcome]?.label ?? outcome;
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

/** Formats how long ago a time was, given in Unix seconds. */
export function ago(then: number, now = Date.now() / 1000): string {
  const seconds = Math.max(0, now - then);
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(then * 1000).toISOString().slice(0, 10);
}
