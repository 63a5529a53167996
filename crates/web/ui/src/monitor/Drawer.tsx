import { useEffect, useRef, useState } from 'preact/hooks';
import { getJson } from '../common/api';
import { Network } from '../common/Network';
import type { NetworkSummary } from '../common/network';
import { UntrustedText } from '../common/UntrustedText';
import { difficultyOf, OUTCOME_LABELS, STAGES } from './cells';

interface Detail {
  position: number; index: number; id: string; name: string; domain: string; website: string; difficulty: number; max_steps: number;
  stage: string; waits_for: string; step: number; attempt: number; outcome: string | null; known: boolean;
  steps: { action: string; thought: string; url: string }[]; dropped_steps: number; url: string; failure: string | null; screenshot: number | null; live_url: string | null;
  network: NetworkSummary | null;
}

/** Details of one task: description, state, latest screenshot and steps. Reloads whenever the cell of the task changes. */
export function Drawer({ position, code, close }: { position: number; code: number; close: () => void }) {
  const [detail, setDetail] = useState<Detail | null>(null);
  const [error, setError] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const control = new AbortController();
    getJson<Detail>(`api/task/${position}`, control.signal).then(
      (found) => { setDetail(found); setError(''); },
      (reason: unknown) => { if (!control.signal.aborted) setError(reason instanceof Error ? reason.message : String(reason)); });
    return () => control.abort();
  }, [position, code]);
  useEffect(() => heading.current?.focus(), [position]);
  const shown = detail?.position === position ? detail : null;
  return (
    <aside class="drawer" aria-labelledby="drawer-title" onKeyDown={(event) => { if (event.key === 'Escape') close(); }}>
      <header>
        <h2 id="drawer-title" ref={heading} tabIndex={-1}>Task {shown?.index ?? position}</h2>
        {shown && <State detail={shown} />}
        <span class="grow" />
        <button type="button" onClick={close} aria-label="Close the task">✕</button>
      </header>
      {error && <p class="notice">{error}</p>}
      {shown && <Body detail={shown} />}
    </aside>
  );
}

function State({ detail }: { detail: Detail }) {
  if (detail.outcome) {
    return <span class={`badge ${detail.outcome === 'success' ? 'good' : 'bad'}`}>{OUTCOME_LABELS[detail.outcome] ?? detail.outcome}</span>;
  }
  const label = STAGES.find((stage) => stage.name === detail.stage)?.label ?? detail.stage;
  return <span class="badge">{detail.step > 0 ? `step ${detail.step} · ` : ''}{label}</span>;
}

/** Returns the line with the intention, if the thought contains one; the saved trajectory has the whole thought. */
function intention(thought: string): string {
  return /^Intention:\s*(.+)$/m.exec(thought)?.[1] ?? thought;
}

function Body({ detail }: { detail: Detail }) {
  return (
    <>
      <UntrustedText block class="task-name" text={detail.name || 'Finished in an earlier part of this run.'} />
      <dl class="facts">
        <dt>Website</dt><dd><UntrustedText text={detail.website} /></dd>
        <dt>Domain</dt><dd><UntrustedText text={detail.domain} /></dd>
        <dt>Difficulty</dt><dd>{detail.difficulty} ({difficultyOf(detail.difficulty)}), at most {detail.max_steps} steps</dd>
        {detail.id && <><dt>Task id</dt><dd><UntrustedText class="mono" text={detail.id} /></dd></>}
        <dt>State</dt><dd>{detail.outcome ? 'finished' : `waiting for ${detail.waits_for}`}{detail.attempt > 0 && `, attempt ${detail.attempt + 1}`}</dd>
        {detail.url && <><dt>Page</dt><dd><UntrustedText class="mono" text={detail.url} /></dd></>}
        {detail.failure && <><dt>Last failure</dt><dd class="bad-text"><UntrustedText text={detail.failure} /></dd></>}
        {detail.network && <><dt>Network</dt><dd><Network summary={detail.network} /></dd></>}
      </dl>
      {detail.live_url && <p><a class="live" href={detail.live_url} target="_blank" rel="noopener noreferrer">Watch the browser live</a></p>}
      {detail.screenshot !== null && (
        <img class="screenshot" src={`api/task/${detail.position}/screenshot?v=${detail.screenshot}`} alt={`Latest screenshot of task ${detail.index}`} />
      )}
      <h3>Steps so far</h3>
      {detail.steps.length === 0 && <p class="muted small">{detail.outcome ? (detail.known ? 'None.' : 'No longer in memory. Use webgym view to see the saved trajectory.') : 'None yet.'}</p>}
      {detail.dropped_steps > 0 && <p class="muted small">The first {detail.dropped_steps} steps are not shown.</p>}
      <ol class="steps" start={detail.dropped_steps + 1}>
        {detail.steps.map((step, number) => (
          <li key={number}>
            <span class="step-number number">{detail.dropped_steps + number + 1}</span>
            <div>
              <UntrustedText block class="action" text={step.action} />
              {step.thought && <UntrustedText block class="muted small thought" text={intention(step.thought)} />}
              {step.url && <UntrustedText block class="muted small mono" text={step.url} />}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}
