import { percent } from '../common/format';
import { points, polyline, scale, type Point, type Scale } from './curve';
import { ofSplit } from './summary';
import type { Split, Success } from './types';

const FRAME = { width: 720, height: 250, left: 44, right: 14, top: 12, bottom: 34 };
const SHARES = [0, 0.25, 0.5, 0.75, 1];
const SPLITS: Split[] = ['train', 'test'];

/** Success over iterations for both splits. The table of iterations has the same numbers as text. */
export function Curve({ success }: { success: Success[] }) {
  const scored = success.filter((one) => one.scored > 0);
  const axes = scale(scored, FRAME);
  return (
    <section class="card curve">
      <h2>Success by iteration</h2>
      {scored.length === 0
        ? <p class="muted small">No iteration is collected yet.</p>
        : (
          <>
            <svg viewBox={`0 0 ${FRAME.width} ${FRAME.height}`} role="img" aria-label="Success rate of the train and the test split by iteration">
              <Axes axes={axes} />
              {SPLITS.map((split) => <Line key={split} split={split} points={points(ofSplit(scored, split), axes)} />)}
            </svg>
            <p class="legend small">
              {SPLITS.filter((split) => ofSplit(scored, split).length).map((split) => (
                <span key={split} class={`line-${split}`}><svg viewBox="0 0 24 10" aria-hidden="true"><line x1="0" y1="5" x2="24" y2="5" /></svg>{split}</span>
              ))}
            </p>
          </>
        )}
    </section>
  );
}

function Axes({ axes }: { axes: Scale }) {
  return (
    <g class="axes">
      {SHARES.map((share) => (
        <g key={share}>
          <line x1={FRAME.left} x2={FRAME.width - FRAME.right} y1={axes.y(share)} y2={axes.y(share)} />
          <text x={FRAME.left - 6} y={axes.y(share) + 4} text-anchor="end">{share * 100} %</text>
        </g>
      ))}
      {axes.iterations.map((iteration) => <text key={iteration} x={axes.x(iteration)} y={FRAME.height - 16} text-anchor="middle">{iteration}</text>)}
      <text x={(FRAME.left + FRAME.width - FRAME.right) / 2} y={FRAME.height - 2} text-anchor="middle">iteration</text>
    </g>
  );
}

function Line({ split, points: found }: { split: Split; points: Point[] }) {
  return (
    <g class={`line-${split}`} data-line={split}>
      <polyline points={polyline(found)} />
      {found.map(({ x, y, success }) => (
        <circle key={success.iteration} cx={x} cy={y} r="4">
          <title>{`${split}, iteration ${success.iteration}: ${percent(success.successes, success.scored)} (${success.successes} of ${success.scored})`}</title>
        </circle>
      ))}
    </g>
  );
}
