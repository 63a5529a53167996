import { useEffect, useRef } from 'preact/hooks';
import { duration } from '../../common/format';
import { screenshot } from '../data/api';
import type { TrajectoryId } from '../data/route';
import type { Step } from '../data/types';
import { overlay, describe } from './overlay';
import { total } from './timings';

interface Props {
  id: TrajectoryId;
  steps: Step[];
  current: number;
  choose: (step: number) => void;
}

/** All steps as small screenshots in a row, with the duration of each. */
export function Strip({ id, steps, current, choose }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const longest = Math.max(1, ...steps.map((step) => total(step)));
  useEffect(() => {
    const box = list.current;
    const chosen = box?.children[current];
    // Not scrollIntoView, because it would scroll the page as well.
    if (box && chosen instanceof HTMLElement) box.scrollLeft = chosen.offsetLeft - (box.clientWidth - chosen.offsetWidth) / 2;
  }, [current]);
  return (
    <ol class="strip" ref={list} aria-label="Steps">
      {steps.map((step, number) => {
        const description = describe(step.action, overlay(step.action, step.observation.ac_tree));
        const time = total(step);
        return (
          <li key={number}>
            <button type="button" aria-current={number === current ? 'step' : undefined} onClick={() => choose(number)}
              aria-label={`Step ${number + 1}: ${description}`} title={`${description}${time > 0 ? `, ${duration(time / 1000)}` : ''}`}>
              {step.screenshot_problem === null
                ? <img src={screenshot(id, number)} alt="" loading="lazy" />
                : <span class="no-thumb" aria-hidden="true">–</span>}
              <span class="time" aria-hidden="true"><i style={{ width: `${(100 * time) / longest}%` }} /></span>
              <span class="name" aria-hidden="true">
                <b>{number + 1}</b> {description}{step.is_keypoint && ' ★'}
              </span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}
