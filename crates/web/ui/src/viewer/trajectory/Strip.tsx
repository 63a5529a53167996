import { useEffect, useRef } from 'preact/hooks';
import { duration } from '../../common/format';
import { screenshot } from '../data/api';
import type { Where } from '../data/route';
import type { Step } from '../data/types';
import { overlay, sentence } from './overlay';
import { total } from './timings';

interface Props {
  where: Where;
  steps: Step[];
  current: number;
  choose: (step: number) => void;
}

/** All steps in a row, small: where the trajectory goes at a glance, with the time that each took. */
export function Strip({ where, steps, current, choose }: Props) {
  const list = useRef<HTMLOListElement>(null);
  const longest = Math.max(1, ...steps.map((step) => total(step)));
  useEffect(() => {
    const box = list.current;
    const chosen = box?.children[current];
    // Not scrollIntoView: that would move the page as well.
    if (box && chosen instanceof HTMLElement) box.scrollLeft = chosen.offsetLeft - (box.clientWidth - chosen.offsetWidth) / 2;
  }, [current]);
  return (
    <ol class="strip" ref={list} aria-label="Steps">
      {steps.map((step, number) => {
        const says = sentence(step.action, overlay(step.action, step.observation.ac_tree));
        const took = total(step);
        return (
          <li key={number}>
            <button type="button" aria-current={number === current ? 'step' : undefined} onClick={() => choose(number)}
              aria-label={`Step ${number + 1}: ${says}`} title={`${says}${took > 0 ? `, ${duration(took / 1000)}` : ''}`}>
              {step.screenshot_problem === null
                ? <img src={screenshot(where, number)} alt="" loading="lazy" />
                : <span class="no-thumb" aria-hidden="true">–</span>}
              <span class="time" aria-hidden="true"><i style={{ width: `${(100 * took) / longest}%` }} /></span>
              <span class="name" aria-hidden="true">
                <b>{number + 1}</b> {says}{step.is_keypoint && ' ★'}
              </span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}
