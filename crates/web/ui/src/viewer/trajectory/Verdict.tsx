import { Foreign } from '../../common/Foreign';
import type { Trajectory, Words } from '../data/types';
import { Outcome } from '../Outcome';

const ABOUT: Record<Words['about']['kind'], string> = {
  blocking: 'Was the agent kept out?',
  support: 'Is the answer borne out by the screenshots?',
  rubric: 'A requirement',
  reference: 'Does it match the reference answer?',
  other: 'The judge',
};

function Passed({ passed }: { passed: boolean | null }) {
  if (passed === null) return <span class="badge">no verdict</span>;
  return <span class={`badge ${passed ? 'good' : 'bad'}`}>{passed ? '✓ passed' : '✗ not passed'}</span>;
}

/** How it ended: the answer, the judge's words one by one, the rubric item by item. */
export function Verdict({ trajectory }: { trajectory: Trajectory }) {
  const { task, rubric, judgment, answer } = trajectory;
  return (
    <section class="card verdict" aria-labelledby="verdict-title">
      <h2 id="verdict-title">Verdict <Outcome outcome={trajectory.outcome} /> <span class="muted">reward {trajectory.reward}</span></h2>
      {trajectory.crash !== null && <p class="notice">Counts as crashed in the metrics: {trajectory.crash}.</p>}
      {!trajectory.is_outcome_recorded && !trajectory.is_begun && <p class="muted small">The file does not say how it ended; told from the last reward.</p>}
      <dl class="fields">
        <div><dt>Final answer</dt><dd>{answer === null ? <span class="muted">none was given</span> : <Foreign text={answer} block class="answer" />}</dd></div>
        {task.reference_answer !== null && <div><dt>Reference answer</dt><dd><Foreign text={task.reference_answer} block /></dd></div>}
        {judgment.map((words, number) => (
          <div key={number}>
            <dt>{ABOUT[words.about.kind]}</dt>
            <dd>{(words.passed !== null || words.about.kind !== 'other') && <Passed passed={words.passed} />}<Foreign text={words.text} block /></dd>
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
                  {item.words.length > 0 ? <Passed passed={item.passed} /> : <span class="badge" title="The judge was not asked about it">not asked</span>}
                  <Foreign text={item.description} />
                </div>
                {item.words.map((text, place) => <Foreign key={place} text={text} block class="judge-words" />)}
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}
