import { Foreign } from '../../common/Foreign';
import type { Where } from '../data/route';
import { link } from '../data/route';
import type { Sibling, Trajectory } from '../data/types';
import { Outcome } from '../Outcome';
import { Stage } from '../trajectory/Stage';
import { StepPanel } from '../trajectory/StepPanel';
import { total } from '../trajectory/timings';
import { addressOf, siblingWords } from './ComparePicker';

interface Props {
  where: Where;
  trajectory: Trajectory;
  step: number;
  siblings: Sibling[];
  choose: (to: Where) => void;
}

export function Side({ where, trajectory, step, siblings, choose }: Props) {
  const shown = Math.min(step, trajectory.steps.length - 1);
  const current = trajectory.steps[shown];
  const longest = Math.max(1, ...trajectory.steps.map(total));
  const pick = (name: string) => {
    const to = siblings.find((one) => addressOf(one) === name);
    if (to) choose({ split: to.split, iteration: to.iteration, key: to.key });
  };
  return (
    <>
      <div class="side-head">
        <label>
          <span class="visually-hidden">Which attempt</span>
          <select value={addressOf(where)} onChange={(event) => pick(event.currentTarget.value)}>
            {siblings.some((one) => addressOf(one) === addressOf(where)) || <option value={addressOf(where)}>{addressOf(where)}</option>}
            {siblings.map((one) => <option key={addressOf(one)} value={addressOf(one)}>{siblingWords(one)}</option>)}
          </select>
        </label>
        <Outcome outcome={trajectory.outcome} />
        <span class="number muted">{trajectory.steps.length} steps</span>
        <a href={link({ page: 'trajectory', ...where })}>open</a>
      </div>
      <p class="side-answer"><span class="muted">Answer: </span><Foreign text={trajectory.answer ?? 'none'} /></p>
      {current ? (
        <>
          {step > shown && <p class="muted small">It was over after step {shown + 1}; this is its last.</p>}
          <Stage where={where} step={current} number={shown} />
          <StepPanel key={shown} step={current} longest={longest} />
        </>
      ) : <p class="card">It has no steps.</p>}
    </>
  );
}
