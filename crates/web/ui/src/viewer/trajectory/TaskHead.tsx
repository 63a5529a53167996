import { UntrustedText } from '../../common/UntrustedText';
import { host } from '../../common/format';
import type { Trajectory } from '../data/types';
import { Outcome } from '../Outcome';

/** The task and the main facts of the trajectory. */
export function TaskHead({ trajectory }: { trajectory: Trajectory }) {
  const { task } = trajectory;
  return (
    <div class="task-head">
      <h2><UntrustedText text={task.task_name || '(no task)'} /></h2>
      <p class="facts">
        <Outcome outcome={trajectory.outcome} />
        <span>{trajectory.class} <span class="muted">{task.difficulty}</span></span>
        <UntrustedText text={[task.domain, task.subdomain].filter(Boolean).join(' / ')} />
        <span title={task.website}><UntrustedText text={host(task.website)} /></span>
        <span class="number">{trajectory.steps.length} of {task.max_steps} steps</span>
        {task.task_id !== null && <UntrustedText text={`id ${task.task_id}`} class="muted" />}
      </p>
    </div>
  );
}
