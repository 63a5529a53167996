import { Foreign } from '../../common/Foreign';
import { count } from '../../common/format';
import type { Json, Step } from '../data/types';
import { Pane } from './Pane';
import { Prompt } from './Prompt';
import { TimingBar } from './TimingBar';

const FIELDS: [string, string][] = [
  ['thinking', 'Thinking'], ['memory', 'Memory'], ['progress', 'Progress'], ['intention', 'Intention'], ['action', 'Action'],
];

const words = (value: Json | undefined): string =>
  value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** The parsed fields; the whole thought only where nothing was told apart in it. */
function fields(step: Step): [string, string][] {
  const tokens = step.response.answering_tokens;
  const found = FIELDS.map(([key, title]): [string, string] => [title, words(tokens[key])]).filter(([, text]) => text !== '');
  const thought = words(tokens['thought']);
  const told = found.some(([title]) => title !== 'Thinking' && title !== 'Action');
  return thought && !told ? [['Thought', thought], ...found] : found;
}

function size(text: string): string {
  return `${count(text.length)} characters`;
}

/** What the agent thought, said and did in one step, and what came of it. */
export function StepPanel({ step, longest }: { step: Step; longest: number }) {
  const { observation, action, response, reward } = step;
  const became = words(response.answering_tokens['observation']);
  return (
    <div class="step-panel">
      <TimingBar step={step} longest={longest} />
      <dl class="fields">
        {fields(step).map(([title, text]) => (
          <div key={title}><dt>{title}</dt><dd><Foreign text={text} block /></dd></div>
        ))}
        <div>
          <dt>Tool call</dt>
          <dd>{action ? <Foreign text={`${action.key} ${JSON.stringify(action.arguments)}`} block class="mono" /> : 'none was recorded'}</dd>
        </div>
        {became && <div><dt>What came of it</dt><dd><Foreign text={became} block /></dd></div>}
        {(reward.submit || reward.submission_judgment !== null) && (
          <div>
            <dt>As evidence</dt>
            <dd>
              <span class={`badge ${reward.submit ? 'good' : ''}`}>{reward.submit ? 'submitted' : 'left out'}</span>
              {reward.submission_judgment !== null && <Foreign text={reward.submission_judgment} block />}
            </dd>
          </div>
        )}
      </dl>
      <Pane title="Reply" note={step.reply_tokens === null ? size(response.raw_response) : `${count(step.reply_tokens)} tokens`}>
        {() => <pre><Foreign text={response.raw_response} /></pre>}
      </Pane>
      <Pane title="Prompt" note={step.prompt_tokens === null ? size(response.raw_prompt) : `${count(step.prompt_tokens)} tokens`}>
        {() => (response.raw_prompt ? <Prompt raw={response.raw_prompt} /> : <p class="muted">None was recorded.</p>)}
      </Pane>
      {observation.ac_tree !== null && (
        <Pane title="Accessibility tree" note={`${count(observation.ac_tree.split('\n').length)} lines`}>
          {() => <pre><Foreign text={observation.ac_tree} /></pre>}
        </Pane>
      )}
    </div>
  );
}
