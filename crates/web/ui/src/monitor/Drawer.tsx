import { useEffect, useRef, useState } from 'preact/hooks';
import { getJson } from '../common/api';
import { Foreign } from '../common/Foreign';
import { difficultyOf, OUTCOME_WORDS, STAGES } from './cells';

interface Detail {
  place: number; index: number; id: string; name: string; domain: string; website: string; difficulty: number; max_steps: number;
  stage: string; waits_for: string; step: number; attempt: number; outcome: string | null; known: boolean;
  steps: { action: string; thought: string; url: string }[]; forgotten: number; url: string; trouble: string | null; picture: number | null;
}

/** One task up close: what it is, what it does now, what it sees, what it did. Looks again whenever its cell changes. */
export function Drawer({ place, code, close }: { place: number; code: number; close: () => void }) {
  const [detail, setDetail] = useState<Detail | null>(null);
  const [trouble, setTrouble] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const cut = new AbortController();
    getJson<Detail>(`api/task/${place}`, cut.signal).then(
      (found) => { setDetail(found); setTrouble(''); },
      (error: unknown) => { if (!cut.signal.aborted) setTrouble(error instanceof Error ? error.message : String(error)); });
    return () => cut.abort();
  }, [place, code]);
  useEffect(() => heading.current?.focus(), [place]);
  const shown = detail?.place === place ? detail : null;
  return (
    <aside class="drawer" aria-labelledby="drawer-title" onKeyDown={(event) => { if (event.key === 'Escape') close(); }}>
      <header>
        <h2 id="drawer-title" ref={heading} tabIndex={-1}>Task {shown?.index ?? place}</h2>
        {shown && <State detail={shown} />}
        <span class="grow" />
        <button type="button" onClick={close} aria-label="Close the task">✕</button>
      </header>
      {trouble && <p class="notice">{trouble}</p>}
      {shown && <Body detail={shown} />}
    </aside>
  );
}

function State({ detail }: { detail: Detail }) {
  if (detail.outcome) {
    return <span class={`badge ${detail.outcome === 'success' ? 'good' : 'bad'}`}>{OUTCOME_WORDS[detail.outcome] ?? detail.outcome}</span>;
  }
  const label = STAGES.find((stage) => stage.name === detail.stage)?.label ?? detail.stage;
  return <span class="badge">{detail.step > 0 ? `step ${detail.step} · ` : ''}{label}</span>;
}

/** Of what a model thought, its intention where it names one: the rest is in the saved trajectory. */
function gist(thought: string): string {
  return /^Intention:\s*(.+)$/m.exec(thought)?.[1] ?? thought;
}

function Body({ detail }: { detail: Detail }) {
  return (
    <>
      <Foreign block class="task-name" text={detail.name || 'Finished in an earlier part of this run.'} />
      <dl class="facts">
        <dt>Website</dt><dd><Foreign text={detail.website} /></dd>
        <dt>Domain</dt><dd><Foreign text={detail.domain} /></dd>
        <dt>Difficulty</dt><dd>{detail.difficulty} ({difficultyOf(detail.difficulty)}), at most {detail.max_steps} steps</dd>
        {detail.id && <><dt>Task id</dt><dd><Foreign class="mono" text={detail.id} /></dd></>}
        <dt>Now</dt><dd>{detail.outcome ? 'over' : `waits for ${detail.waits_for}`}{detail.attempt > 0 && `, attempt ${detail.attempt + 1}`}</dd>
        {detail.url && <><dt>Page</dt><dd><Foreign class="mono" text={detail.url} /></dd></>}
        {detail.trouble && <><dt>Last trouble</dt><dd class="bad-text"><Foreign text={detail.trouble} /></dd></>}
      </dl>
      {detail.picture !== null && (
        <img class="screenshot" src={`api/task/${detail.place}/picture?v=${detail.picture}`} alt={`What the agent of task ${detail.index} sees`} />
      )}
      <h3>Steps so far</h3>
      {!detail.known && <p class="muted small">{detail.outcome ? 'No longer kept here; the saved trajectory has them (webgym view).' : 'None yet.'}</p>}
      {detail.forgotten > 0 && <p class="muted small">The first {detail.forgotten} are not shown.</p>}
      <ol class="steps" start={detail.forgotten + 1}>
        {detail.steps.map((step, number) => (
          <li key={number}>
            <span class="step-number number">{detail.forgotten + number + 1}</span>
            <div>
              <Foreign block class="action" text={step.action} />
              {step.thought && <Foreign block class="muted small thought" text={gist(step.thought)} />}
              {step.url && <Foreign block class="muted small mono" text={step.url} />}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}
