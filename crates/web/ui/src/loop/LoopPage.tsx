import { useEffect, useReducer } from 'preact/hooks';
import { Brand } from '../common/Brand';
import { UntrustedText } from '../common/UntrustedText';
import { ThemeToggle } from '../common/theme';
import { ActivityCard } from './ActivityCard';
import { Curve } from './Curve';
import { FailureCard } from './FailureCard';
import { Iterations } from './Iterations';
import { LoopHeadline } from './LoopHeadline';
import { describe, isAlive } from './summary';
import type { Connection, LoopStore } from './store';
import type { Loop, Snapshot } from './types';

const CONNECTIONS: Record<Connection, [label: string, tone: string]> = {
  connecting: ['connecting', ''], live: ['live', 'good'], lost: ['connection lost, reconnecting', 'bad'],
};

export function LoopPage({ store }: { store: LoopStore }) {
  const [, update] = useReducer((before: number) => before + 1, 0);
  useEffect(() => store.listen(() => update(undefined)), [store]);
  // Durations of what runs advance without messages.
  useEffect(() => {
    const timer = setInterval(() => update(undefined), 1000);
    return () => clearInterval(timer);
  }, []);
  const { snapshot, connection } = store;
  const [label, tone] = CONNECTIONS[connection];
  return (
    <>
      <header class="topbar">
        <Brand page="loop" />
        {snapshot && <span class="run small" title={snapshot.save_path}><UntrustedText text={snapshot.name} /></span>}
        <span class={`badge ${tone}`} role="status" data-connection={connection}>{label}</span>
        <span class="grow" />
        {snapshot?.has_run_page && <a class="button" href="./">Run</a>}
        <ThemeToggle />
      </header>
      <main class="loop">
        {snapshot ? <Content snapshot={snapshot} now={store.now()} /> : <p class="muted">{connection === 'lost' ? 'The monitor does not respond. Retrying every few seconds.' : 'Connecting…'}</p>}
      </main>
    </>
  );
}

function Content({ snapshot, now }: { snapshot: Snapshot; now: number }) {
  if (snapshot.problem) return <p class="notice bad-notice" role="alert" data-state="problem">The state of the loop cannot be read: <UntrustedText text={snapshot.problem} /></p>;
  if (!snapshot.loop) return <p class="notice" role="status" data-state="none">There is no loop in <UntrustedText text={snapshot.save_path} class="mono" /> yet. It appears here as soon as <code>webgym loop</code> has started.</p>;
  return <LoopContent loop={snapshot.loop} now={now} />;
}

function LoopContent({ loop, now }: { loop: Loop; now: number }) {
  const state = describe(loop);
  const alive = isAlive(loop);
  return (
    <>
      {state.text && <p class={`notice ${state.tone === 'bad' ? 'bad-notice' : ''}`} role="status"><UntrustedText text={state.text} /></p>}
      {loop.dead_ranks.map(({ rank, host }) => <p key={rank} class="notice bad-notice" role="status">Rank {rank} on <UntrustedText text={host} /> does not answer.</p>)}
      <LoopHeadline loop={loop} state={state} now={now} alive={alive} />
      <div class="columns">
        <Curve success={loop.success} />
        {loop.activity
          ? <ActivityCard activity={loop.activity} now={now} alive={alive} />
          : loop.failure && <FailureCard failure={loop.failure} now={now} />}
      </div>
      <Iterations loop={loop} now={now} alive={alive} />
      {loop.activity && loop.failure && <FailureCard failure={loop.failure} now={now} />}
    </>
  );
}
