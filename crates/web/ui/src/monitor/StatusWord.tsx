import type { Status } from './store';

const WORDS: Record<Status, [word: string, look: string]> = {
  connecting: ['connecting', ''],
  live: ['live', 'good'],
  lost: ['connection lost, trying again', 'bad'],
  over: ['the run is over', ''],
};

/** Whether what is shown is what is. */
export function StatusWord({ status }: { status: Status }) {
  const [word, look] = WORDS[status];
  return <span class={`badge ${look}`} role="status" data-status={status}>{word}</span>;
}
