import { Network } from '../../common/Network';
import { UntrustedText } from '../../common/UntrustedText';
import type { JudgeText, Trajectory } from '../data/types';
import { Outcome } from '../Outcome';

const HEADINGS: Record<JudgeText['about']['kind'], string> = {
  blocking: 'Did the site block the agent?',
  support: 'Do the screenshots support the answer?',
  rubric: 'Rubric item',
  reference: 'Does the answer match the reference?',
  other: 'Judge',
};

function Passed({ passed }: { passed: boolean | null }) {
  if (passed === null) return <span class="badge">no verdict</span>;
  return <span class={`badge ${passed ? 'good' : 'bad'}`}>{passed ? '✓ passed' : '✗ not passed'}</span>;
}

/** The result of a trajectory: the answer, the texts of the judge, and the rubric items. */
export function Verdict({ trajectory }: { trajectory: Trajectory }) {
  const { task, rubric, judgment, answer } = trajectory;
  return (
    <section class="card verdict" aria-labelledby="verdict-title">
      <h2 id="verdict-title">Verdict <Outcome outcome={trajectory.outcome} /> <span class="muted">reward {trajectory.reward}</span></h2>
      {trajectory.crash !== null && <p class="notice">Counts as crashed in the metrics: {trajectory.crash}.</p>}
      {!trajectory.is_outcome_recorded && !trajectory.is_running && <p class="muted small">The file does not contain the outcome; it was inferred from the last reward.</p>}
      <dl class="fields">
        {typeof trajectory.extra['ending'] === 'string' && <div><dt>Ending</dt><dd><UntrustedText text={trajectory.extra['ending']} block /></dd></div>}
        {trajectory.network !== null && <div><dt>Network</dt><dd><Network summary={trajectory.network} /></dd></div>}
        <div><dt>Final answer</dt><dd>{answer === null ? <span class="muted">none</span> : <UntrustedText text={answer} block class="answer" />}</dd></div>
        {task.reference_answer !== null && <div><dt>Reference answer</dt><dd><UntrustedText text={task.reference_answer} block /></dd></div>}
        {judgment.map((judged, number) => (
          <div key={number}>
            <dt>{HEADINGS[judged.about.kind]}</dt>
            <dd>{(judged.passed !== null || judged.about.kind !== 'other') && <Passed passed={judged.passed} />}<UntrustedText text={judged.text} block /></dd>
          </div>
        ))}
      </dl>
      {rubric.length > 0 && (
        <>
          <h3>Rubric</h3>
          <ol class="rubric">
            {rubric.map((item, number) => (
              <li key={number}>
                <div class="rubric-head">
                  {item.texts.length > 0 ? <Passed passed={item.passed} /> : <span class="badge" title="The judge did not evaluate this item">not judged</span>}
                  <UntrustedText text={item.description} />
                </div>
                {item.texts.map((text, index) => <UntrustedText key={index} text={text} block class="judge-text" />)}
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}
