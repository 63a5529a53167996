import type { Message, Snapshot } from './types';

/** connecting: no message yet. live: connected. lost: the server does not respond, reconnecting. */
export type Connection = 'connecting' | 'live' | 'lost';

/** The state of the loop as received from the server. Owns the event stream and notifies listeners of changes. */
export class LoopStore {
  snapshot: Snapshot | null = null;
  connection: Connection = 'connecting';
  /** Seconds by which the server's clock is ahead of ours. */
  private ahead = 0;
  private readonly listeners = new Set<() => void>();

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Returns the time of the server's clock in Unix seconds. */
  now(): number {
    return Date.now() / 1000 + this.ahead;
  }

  connect(): void {
    const source = new EventSource('api/loop/events');
    source.addEventListener('loop', (event) => {
      const message = JSON.parse((event as MessageEvent<string>).data) as Message;
      this.snapshot = message.snapshot;
      this.ahead = message.now - Date.now() / 1000;
      this.set('live');
    });
    source.onerror = () => {
      this.set('lost');
      // The browser does not retry after a response that is not a stream, such as an error while the server starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 3000);
    };
  }

  private set(connection: Connection): void {
    this.connection = connection;
    for (const listener of this.listeners) listener();
  }
}
