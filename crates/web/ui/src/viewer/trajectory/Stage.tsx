import { useState } from 'preact/hooks';
import { Foreign } from '../../common/Foreign';
import { screenshot } from '../data/api';
import type { Where } from '../data/route';
import type { Step } from '../data/types';
import { Trouble } from '../Trouble';
import { Marks } from './Marks';
import { overlay, sentence } from './overlay';

/** One step's screenshot with its action drawn on it. */
export function Stage({ where, step, number }: { where: Where; step: Step; number: number }) {
  const [size, setSize] = useState<{ width: number; height: number } | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const source = screenshot(where, number);
  const shown = overlay(step.action, step.observation.ac_tree);
  const says = sentence(step.action, shown);
  const label = shown.text ?? null;
  const problem = step.screenshot_problem ?? (failed === source ? 'the screenshot cannot be shown: its file is damaged' : null);
  return (
    <figure class="stage">
      <div class="browser">
        <div class="address">
          <span class="dots" aria-hidden="true"><i /><i /><i /></span>
          <Foreign text={step.observation.url || 'about:blank'} class="url" />
          <Foreign text={step.observation.title} class="muted" />
        </div>
        {problem ? <div class="no-picture"><Trouble text={problem} /></div> : (
          <div class="picture">
            <img src={source} alt={`Screenshot of step ${number + 1}. Action: ${says}`}
              onLoad={(event) => setSize({ width: event.currentTarget.naturalWidth, height: event.currentTarget.naturalHeight })}
              onError={() => setFailed(source)} />
            {size && <Marks shown={shown} size={size} />}
            {shown.point && label !== null && (
              <span class="typed" style={{ left: `${Math.min(shown.point.x, 780) / 10}%`, top: `${Math.min(shown.point.y + 45, 940) / 10}%` }}>
                <Foreign text={label} />
              </span>
            )}
          </div>
        )}
      </div>
      <figcaption>
        <strong>{says}</strong>
        {shown.element?.text && <Foreign text={` ${shown.element.text}`} class="muted" />}
        {label !== null && <> <q><Foreign text={label} /></q></>}
        {step.same_as_next_screenshot === true && <span class="badge" title="The next screenshot is the same, pixel by pixel">page unchanged</span>}
        {step.is_keypoint && <span class="badge good" title="The judge took this screenshot as evidence">evidence</span>}
      </figcaption>
    </figure>
  );
}
