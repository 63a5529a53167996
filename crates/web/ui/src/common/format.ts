// Formats numbers, durations and texts for display. Pure functions; see format.test.ts.

const GROUPED = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (value: number): string => GROUPED.format(value);

/** Formats a share in per cent; a dash if the whole is zero. */
export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return '–';
  const share = (100 * part) / whole;
  return share > 0 && share < 10 ? `${share.toFixed(1)} %` : `${Math.round(share)} %`;
}

/** Formats a rate, with more decimals for small values. */
export function rate(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value >= 100) return count(value);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** Formats seconds: 850 ms, 4.2 s, 3 min 05 s, 2 h 07 min. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  if (whole < 172_800) return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, '0')} min`;
  return `${Math.round(whole / 86_400)} days`;
}

/** Shortens a text to `limit` characters with an ellipsis, without splitting surrogate pairs. */
export function shorten(text: string, limit: number): string {
  const characters = Array.from(text.length > limit * 2 ? text.slice(0, limit * 2 + 2) : text);
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join('')}…`;
}

/** Returns the host of a URL, or the text itself if it is not a URL. */
export function host(url: string): string {
  try {
    return new URL(url).host || url;
  } catch {
    return url;
  }
}
