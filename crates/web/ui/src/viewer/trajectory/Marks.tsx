import type { Direction, Overlay } from './overlay';

const ARROWS: Record<Direction, [number, number]> = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };

interface Size {
  width: number;
  height: number;
}

/** Draws an action over the screenshot, in the screenshot's pixels so that circles stay round. */
export function Marks({ shown, size }: { shown: Overlay; size: Size }) {
  const { width, height } = size;
  const unit = Math.max(width, height) / 1000;
  // Draw the box around the element, not on its edge.
  const margin = 3 * unit;
  const x = (value: number) => (value * width) / 1000;
  const y = (value: number) => (value * height) / 1000;
  return (
    <svg class="marks" viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {shown.box && (
        <g class="halo">
          {['outer', 'inner'].map((name) => shown.box && (
            <rect key={name} class={name} x={x(shown.box.left) - margin} y={y(shown.box.top) - margin} rx={5 * unit}
              width={x(shown.box.right - shown.box.left) + 2 * margin} height={y(shown.box.bottom - shown.box.top) + 2 * margin} stroke-width={(name === 'outer' ? 8 : 4.5) * unit} />
          ))}
        </g>
      )}
      {shown.point && (
        <g class="halo" transform={`translate(${x(shown.point.x)} ${y(shown.point.y)})`}>
          <circle class="outer" r={17 * unit} stroke-width={6 * unit} />
          <circle class="inner" r={17 * unit} stroke-width={3 * unit} />
          <circle class="dot" r={4.5 * unit} stroke-width={1.5 * unit} />
        </g>
      )}
      {shown.scroll && <Arrow at={[x(shown.scroll.at.x), y(shown.scroll.at.y)]} direction={shown.scroll.direction} unit={unit} />}
    </svg>
  );
}

function Arrow({ at, direction, unit }: { at: [number, number]; direction: Direction; unit: number }) {
  const [dx, dy] = ARROWS[direction];
  const reach = 70 * unit;
  const head = 24 * unit;
  const [tipX, tipY] = [dx * reach, dy * reach];
  const shaft = `M${-tipX} ${-tipY}L${tipX} ${tipY}`;
  const wings = `M${tipX - dx * head - dy * head} ${tipY - dy * head - dx * head}L${tipX} ${tipY}L${tipX - dx * head + dy * head} ${tipY - dy * head + dx * head}`;
  return (
    <g class="halo" transform={`translate(${at[0]} ${at[1]})`} stroke-linecap="round" stroke-linejoin="round">
      <path class="outer" d={shaft + wings} stroke-width={13 * unit} />
      <path class="inner" d={shaft + wings} stroke-width={7 * unit} />
    </g>
  );
}
