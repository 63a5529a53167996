import { patch, unpack } from './cells';

export interface About { name: string; split: string; iteration: number | null; model: string; judge: string; version: string }
interface Dictionary { names: string[]; of: number[] }
/** The properties of the tasks, by column. */
export interface Tasks { run: string; revision: number; about: About; has_loop?: boolean; index: number[]; id: string[]; name: string[]; difficulty: number[]; domain: Dictionary; website: Dictionary }
export interface Queue { busy: number; slots: number; waiting: number }
export interface FarmNode { name: string; healthy: boolean; capacity: number; available: number; in_use: number; starting: number; dead: number }
export interface Statistics {
  tasks: number; revision: number; done: number; elapsed: number; stages: number[]; outcomes: Record<string, number>; steps: number;
  retried: number; failures: number; steps_per_second: number; trajectories_per_minute: number; eta: number | null;
  latency: Record<string, [count: number, median: number, high: number]>; policy: Queue; judge: Queue;
  nodes: FarmNode[] | null; stalled: number; diagnosis: string | null; hold: string | null;
  /** For each website: exact, normalised, scored and missed requests of replayed episodes. */
  coverage?: [site: string, exact: number, normalised: number, scored: number, missed: number][];
}
interface Message { run?: string; full?: string; at?: number[]; to?: number[]; statistics?: Statistics }

/** connecting: no message yet. live: connected. lost: the server does not respond, reconnecting. ended: the run has ended. */
export type Status = 'connecting' | 'live' | 'lost' | 'ended';

/** Seconds of history in the chart of steps per second. */
const MAX_HISTORY = 300;
/** Milliseconds between two loads of a list of tasks that grows. */
const RELOAD_INTERVAL = 1000;

/** The state of the run as received from the server. Owns the event stream and notifies listeners of changes. */
export class Store {
  codes: Uint16Array = new Uint16Array(0);
  tasks: Tasks | null = null;
  statistics: Statistics | null = null;
  status: Status = 'connecting';
  /** Steps per second, one value per second. */
  history: number[] = [];
  private readonly listeners = new Set<() => void>();
  private source: EventSource | null = null;
  private loading = '';
  private loadedAt = 0;
  private lastSecond = 0;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }

  connect(): void {
    const source = new EventSource('api/events');
    this.source = source;
    const on = (name: string, handle: (message: Message) => void) =>
      source.addEventListener(name, (event) => {
        handle(JSON.parse((event as MessageEvent<string>).data) as Message);
        this.notify();
      });
    on('snapshot', (message) => this.apply(message));
    on('delta', (message) => this.apply(message));
    on('over', () => { this.status = 'ended'; });
    source.onerror = () => {
      if (this.status !== 'ended') this.status = 'lost';
      // The browser does not retry after a response that is not a stream, such as an error while the server starts.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 3000);
      this.notify();
    };
  }

  close(): void {
    this.source?.close();
  }

  private apply(message: Message): void {
    this.status = 'live';
    if (message.run && message.run !== this.tasks?.run) void this.loadTasks(message.run);
    else if (this.tasks && message.statistics && this.isOutdated(this.tasks, message.statistics)) void this.loadTasks(this.tasks.run);
    if (message.full !== undefined) this.codes = unpack(message.full);
    else if (message.at && message.to) patch(this.codes, message.at, message.to);
    if (message.statistics) this.record(message.statistics);
  }

  private record(statistics: Statistics): void {
    this.statistics = statistics;
    const second = Math.floor(statistics.elapsed);
    if (second === this.lastSecond) return;
    this.lastSecond = second;
    this.history = [...this.history.slice(1 - MAX_HISTORY), statistics.steps_per_second];
  }

  /** Returns whether tasks have joined the run since the list was loaded. Statistics arrive every second, so that the last ones are loaded, too. */
  private isOutdated(tasks: Tasks, statistics: Statistics): boolean {
    return tasks.revision !== statistics.revision && Date.now() - this.loadedAt >= RELOAD_INTERVAL;
  }

  private async loadTasks(run: string): Promise<void> {
    if (this.loading === run) return;
    this.loading = run;
    if (this.tasks?.run !== run) this.history = [];
    try {
      const response = await fetch('api/tasks', { credentials: 'same-origin' });
      if (response.ok) this.tasks = (await response.json()) as Tasks;
    } catch {
      // The next snapshot or statistics retry.
    }
    this.loading = '';
    this.loadedAt = Date.now();
    this.notify();
  }
}
