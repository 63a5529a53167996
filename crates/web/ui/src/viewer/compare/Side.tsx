import { UntrustedText } from '../../common/UntrustedText';
import type { TrajectoryId } from '../data/route';
import { link } from '../data/route';
import type { Sibling, Trajectory } from '../data/types';
import { Outcome } from '../Outcome';
import { StepView } from '../trajectory/StepView';
import { StepPanel } from '../trajectory/StepPanel';
import { total } from '../trajectory/timings';
import { addressOf, siblingLabel } from './ComparePicker';

interface Props {
  id: TrajectoryId;
  trajectory: Trajectory;
  step: number;
  siblings: Sibling[];
  choose: (to: TrajectoryId) => void;
}

/** One side of a comparison: the trajectory and its current step. */
export function Side({ id, trajectory, step, siblings, choose }: Props) {
  const shown = Math.min(step, trajectory.steps.length - 1);
  const current = trajectory.steps[shown];
  const longest = Math.max(1, ...trajectory.steps.map(total));
  const pick = (name: string) => {
    const to = siblings.find((sibling) => addressOf(sibling) === name);
    if (to) choose({ split: to.split, iteration: to.iteration, key: to.key });
  };
  return (
    <>
      <div class="side-head">
        <label>
          <span class="visually-hidden">Trajectory</span>
          <select value={addressOf(id)} onChange={(event) => pick(event.currentTarget.value)}>
            {siblings.some((sibling) => addressOf(sibling) === addressOf(id)) || <option value={addressOf(id)}>{addressOf(id)}</option>}
            {siblings.map((sibling) => <option key={addressOf(sibling)} value={addressOf(sibling)}>{siblingLabel(sibling)}</option>)}
          </select>
        </label>
        <Outcome outcome={trajectory.outcome} />
        <span class="number muted">{trajectory.steps.length} steps</span>
        <a href={link({ page: 'trajectory', ...id })}>Open</a>
      </div>
      <p class="side-answer"><span class="muted">Answer: </span><UntrustedText text={trajectory.answer ?? 'none'} /></p>
      {current ? (
        <>
          {step > shown && <p class="muted small">This trajectory ended after step {shown + 1}; its last step is shown.</p>}
          <StepView id={id} step={current} number={shown} />
          <StepPanel key={shown} step={current} longest={longest} />
        </>
      ) : <p class="card">This trajectory has no steps.</p>}
    </>
  );
}
