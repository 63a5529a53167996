import { patch, unpack } from './cells';

export interface About { name: string; split: string; iteration: number; model: string; judge: string; version: string }
interface Dictionary { names: string[]; of: number[] }
/** What the tasks are, by column. */
export interface Tasks { run: string; about: About; index: number[]; id: string[]; name: string[]; difficulty: number[]; domain: Dictionary; website: Dictionary }
export interface Queue { busy: number; places: number; waiting: number }
export interface FarmNode { name: string; healthy: boolean; capacity: number; available: number; in_use: number; starting: number; dead: number }
export interface Figures {
  tasks: number; done: number; elapsed: number; stages: number[]; outcomes: Record<string, number>; steps: number;
  retried: number; troubles: number; steps_per_second: number; trajectories_per_minute: number; eta: number | null;
  latency: Record<string, [count: number, median: number, high: number]>; policy: Queue; judge: Queue;
  nodes: FarmNode[] | null; stalled: number; diagnosis: string | null;
}
interface Message { run?: string; full?: string; at?: number[]; to?: number[]; figures?: Figures }

/** connecting: nothing yet. live. lost: the server does not answer; it is tried again. over: it said that it has ended. */
export type Status = 'connecting' | 'live' | 'lost' | 'over';

const HISTORY = 300;

/** The run as the server tells of it. Owns the stream; whoever shows something listens. */
export class Store {
  codes: Uint16Array = new Uint16Array(0);
  tasks: Tasks | null = null;
  figures: Figures | null = null;
  status: Status = 'connecting';
  /** Steps per second, once a second. */
  history: number[] = [];
  private readonly listeners = new Set<() => void>();
  private source: EventSource | null = null;
  private loading = '';
  private lastSecond = 0;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  connect(): void {
    const source = new EventSource('api/events');
    this.source = source;
    const on = (name: string, handle: (message: Message) => void) =>
      source.addEventListener(name, (event) => {
        handle(JSON.parse((event as MessageEvent<string>).data) as Message);
        this.changed();
      });
    on('snapshot', (message) => this.take(message));
    on('delta', (message) => this.take(message));
    on('over', () => { this.status = 'over'; });
    source.onerror = () => {
      if (this.status !== 'over') this.status = 'lost';
      // The browser gives up on an answer that is no stream; a server that starts anew may have one soon.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 3000);
      this.changed();
    };
  }

  close(): void {
    this.source?.close();
  }

  private take(message: Message): void {
    this.status = 'live';
    if (message.run && message.run !== this.tasks?.run) void this.load(message.run);
    if (message.full !== undefined) this.codes = unpack(message.full);
    else if (message.at && message.to) patch(this.codes, message.at, message.to);
    if (message.figures) this.note(message.figures);
  }

  private note(figures: Figures): void {
    this.figures = figures;
    const second = Math.floor(figures.elapsed);
    if (second === this.lastSecond) return;
    this.lastSecond = second;
    this.history = [...this.history.slice(1 - HISTORY), figures.steps_per_second];
  }

  private async load(run: string): Promise<void> {
    if (this.loading === run) return;
    this.loading = run;
    this.history = [];
    try {
      const answer = await fetch('api/tasks', { credentials: 'same-origin' });
      if (answer.ok) this.tasks = (await answer.json()) as Tasks;
    } catch {
      // The next snapshot tries again.
    }
    if (this.tasks?.run !== run) this.loading = '';
    this.changed();
  }
}
