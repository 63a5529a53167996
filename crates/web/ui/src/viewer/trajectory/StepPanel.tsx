import { UntrustedText } from '../../common/UntrustedText';
import { count } from '../../common/format';
import type { Json, Step } from '../data/types';
import { Pane } from './Pane';
import { Prompt } from './Prompt';
import { TimingBar } from './TimingBar';

const FIELDS: [string, string][] = [
  ['thinking', 'Thinking'], ['memory', 'Memory'], ['progress', 'Progress'], ['intention', 'Intention'], ['action', 'Action'],
];

const toText = (value: Json | undefined): string =>
  value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** Returns the parsed fields of the response, or the whole thought if it was not split into fields. */
function fields(step: Step): [string, string][] {
  const tokens = step.response.answering_tokens;
  const found = FIELDS.map(([key, title]): [string, string] => [title, toText(tokens[key])]).filter(([, text]) => text !== '');
  const thought = toText(tokens['thought']);
  const isParsed = found.some(([title]) => title !== 'Thinking' && title !== 'Action');
  return thought && !isParsed ? [['Thought', thought], ...found] : found;
}

function size(text: string): string {
  return `${count(text.length)} characters`;
}

/** One step in detail: timings, parsed response, tool call, prompt and accessibility tree. */
export function StepPanel({ step, longest }: { step: Step; longest: number }) {
  const { observation, action, response, reward } = step;
  const result = toText(response.answering_tokens['observation']);
  return (
    <div class="step-panel">
      <TimingBar step={step} longest={longest} />
      <dl class="fields">
        {fields(step).map(([title, text]) => (
          <div key={title}><dt>{title}</dt><dd><UntrustedText text={text} block /></dd></div>
        ))}
        <div>
          <dt>Tool call</dt>
          <dd>{action ? <UntrustedText text={`${action.key} ${JSON.stringify(action.arguments)}`} block class="mono" /> : 'not recorded'}</dd>
        </div>
        {result && <div><dt>Result</dt><dd><UntrustedText text={result} block /></dd></div>}
        {(reward.submit || reward.submission_judgment !== null) && (
          <div>
            <dt>Evidence for the judge</dt>
            <dd>
              <span class={`badge ${reward.submit ? 'good' : ''}`}>{reward.submit ? 'submitted' : 'not submitted'}</span>
              {reward.submission_judgment !== null && <UntrustedText text={reward.submission_judgment} block />}
            </dd>
          </div>
        )}
      </dl>
      <Pane title="Response" note={step.reply_tokens === null ? size(response.raw_response) : `${count(step.reply_tokens)} tokens`}>
        {() => <pre><UntrustedText text={response.raw_response} /></pre>}
      </Pane>
      <Pane title="Prompt" note={step.prompt_tokens === null ? size(response.raw_prompt) : `${count(step.prompt_tokens)} tokens`}>
        {() => (response.raw_prompt ? <Prompt raw={response.raw_prompt} /> : <p class="muted">Not recorded.</p>)}
      </Pane>
      {observation.ac_tree !== null && (
        <Pane title="Accessibility tree" note={`${count(observation.ac_tree.split('\n').length)} lines`}>
          {() => <pre><UntrustedText text={observation.ac_tree} /></pre>}
        </Pane>
      )}
    </div>
  );
}
