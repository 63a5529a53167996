import { useState } from 'preact/hooks';
import { UntrustedText } from '../../common/UntrustedText';
import { screenshot } from '../data/api';
import type { TrajectoryId } from '../data/route';
import type { Step } from '../data/types';
import { ErrorNotice } from '../Notice';
import { markOn } from './markBox';
import { Marks } from './Marks';
import { overlay, describe, type Overlay } from './overlay';

/** The screenshot of a step with the action drawn on it. */
export function StepView({ id, step, number }: { id: TrajectoryId; step: Step; number: number }) {
  const [size, setSize] = useState<{ width: number; height: number } | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const source = screenshot(id, number);
  const [mark, setMark] = useState<{ source: string; box: Overlay['box'] } | null>(null);
  const recorded = overlay(step.action, step.observation.ac_tree);
  const shown = mark?.source === source && !recorded.box ? { ...recorded, box: mark.box } : recorded;
  const description = describe(step.action, shown);
  const label = shown.text;
  // Show typed text below the field, so that it does not cover it.
  const labelPosition = shown.box ? { x: shown.box.left, y: shown.box.bottom + 12 } : shown.point && { x: shown.point.x, y: shown.point.y + 45 };
  const problem = step.screenshot_problem ?? (failed === source ? 'the screenshot cannot be shown: its file is damaged' : null);
  const loaded = (image: HTMLImageElement) => {
    setSize({ width: image.naturalWidth, height: image.naturalHeight });
    if (recorded.element) setMark({ source, box: markOn(image, recorded.element.id) });
  };
  return (
    <figure class="step-view">
      <div class="browser">
        <div class="address">
          <span class="dots" aria-hidden="true"><i /><i /><i /></span>
          <UntrustedText text={step.observation.url || 'about:blank'} class="url" />
          <UntrustedText text={step.observation.title} class="muted" />
        </div>
        {problem ? <div class="no-screenshot"><ErrorNotice text={problem} /></div> : (
          <div class="screenshot">
            <img src={source} alt={`Screenshot of step ${number + 1}. Action: ${description}`}
              onLoad={(event) => loaded(event.currentTarget)}
              onError={() => setFailed(source)} />
            {size && <Marks shown={shown} size={size} />}
            {labelPosition && label !== null && (
              <span class="typed" style={{ left: `${Math.min(labelPosition.x, 780) / 10}%`, top: `${Math.min(labelPosition.y, 940) / 10}%` }}>
                <UntrustedText text={label} />
              </span>
            )}
          </div>
        )}
      </div>
      <figcaption>
        <strong>{description}</strong>
        {shown.element?.text && <UntrustedText text={` ${shown.element.text}`} class="muted" />}
        {label !== null && <> <q><UntrustedText text={label} /></q></>}
        {step.same_as_next_screenshot === true && <span class="badge" title="The next screenshot is identical">page unchanged</span>}
        {step.is_keypoint && <span class="badge good" title="The judge used this screenshot as evidence">evidence</span>}
      </figcaption>
    </figure>
  );
}
