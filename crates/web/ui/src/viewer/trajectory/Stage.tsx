import { useState } from 'preact/hooks';
import { Foreign } from '../../common/Foreign';
import { screenshot } from '../data/api';
import type { Where } from '../data/route';
import type { Step } from '../data/types';
import { Trouble } from '../Trouble';
import { markOn } from './markBox';
import { Marks } from './Marks';
import { overlay, sentence, type Overlay } from './overlay';

/** One step's screenshot with its action drawn on it. */
export function Stage({ where, step, number }: { where: Where; step: Step; number: number }) {
  const [size, setSize] = useState<{ width: number; height: number } | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const source = screenshot(where, number);
  const [mark, setMark] = useState<{ source: string; box: Overlay['box'] } | null>(null);
  const told = overlay(step.action, step.observation.ac_tree);
  const shown = mark?.source === source && !told.box ? { ...told, box: mark.box } : told;
  const says = sentence(step.action, shown);
  const label = shown.text;
  // Below what was typed into, so that it does not hide it.
  const at = shown.box ? { x: shown.box.left, y: shown.box.bottom + 12 } : shown.point && { x: shown.point.x, y: shown.point.y + 45 };
  const problem = step.screenshot_problem ?? (failed === source ? 'the screenshot cannot be shown: its file is damaged' : null);
  const loaded = (image: HTMLImageElement) => {
    setSize({ width: image.naturalWidth, height: image.naturalHeight });
    if (told.element) setMark({ source, box: markOn(image, told.element.id) });
  };
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
              onLoad={(event) => loaded(event.currentTarget)}
              onError={() => setFailed(source)} />
            {size && <Marks shown={shown} size={size} />}
            {at && label !== null && (
              <span class="typed" style={{ left: `${Math.min(at.x, 780) / 10}%`, top: `${Math.min(at.y, 940) / 10}%` }}>
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
