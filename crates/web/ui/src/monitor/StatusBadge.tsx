import type { Status } from './store';

const LABELS: Record<Status, [label: string, tone: string]> = {
  connecting: ['connecting', ''],
  live: ['live', 'good'],
  lost: ['connection lost, reconnecting', 'bad'],
  ended: ['run ended', ''],
};

/** Shows whether the page is connected to the run. */
export function StatusBadge({ status }: { status: Status }) {
  const [label, tone] = LABELS[status];
  return <span class={`badge ${tone}`} role="status" data-status={status}>{label}</span>;
}
