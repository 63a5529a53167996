import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useThemeVersion } from '../common/theme';
import { cellAt, fit, moved } from './geometry';
import { Painter } from './paint';

interface Props {
  codes: Uint16Array;
  positions: number[];
  version: number;
  zoom: number;
  selected: number;
  describe: (position: number) => string;
  open: (position: number) => void;
}

/** All tasks as coloured cells, painted on a canvas of the size of the visible part. */
export function Grid({ codes, positions, version, zoom, selected, describe, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef(new Painter());
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(0);
  const [cursor, setCursor] = useState(-1);
  const [focused, setFocused] = useState(false);
  const [hovered, setHovered] = useState(-1);
  const theme = useThemeVersion();
  const geometry = fit(positions.length, size.width, size.height, zoom);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => painter.current.loadColours(), [theme]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || size.width === 0) return;
    const frame = requestAnimationFrame(() =>
      painter.current.paint(context, { codes, positions, geometry, ...size, top, cursor, selected, focused }));
    return () => cancelAnimationFrame(frame);
  }, [codes, positions, version, geometry.size, geometry.columns, size, top, cursor, selected, focused, theme]);

  const positionUnder = (event: MouseEvent): number => {
    const bounds = canvas.current?.getBoundingClientRect();
    const number = bounds ? cellAt(geometry, positions.length, event.clientX - bounds.left, event.clientY - bounds.top + top) : -1;
    return positions[number] ?? -1;
  };
  const press = (event: KeyboardEvent) => {
    const current = Math.max(0, positions.indexOf(cursor));
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (cursor >= 0) open(cursor);
      return;
    }
    const page = Math.max(1, Math.floor(size.height / geometry.size));
    const next = cursor < 0 && event.key.startsWith('Arrow') ? 0 : moved(event.key, current, positions.length, geometry, page);
    if (next === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setCursor(positions[next] ?? -1);
    scrollTo(next);
  };
  const scrollTo = (number: number) => {
    const y = Math.floor(number / geometry.columns) * geometry.size;
    const element = box.current;
    if (!element) return;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + geometry.size > element.scrollTop + size.height) element.scrollTop = y + geometry.size - size.height;
  };
  const ratio = devicePixelRatio || 1;
  const described = hovered >= 0 ? hovered : focused ? cursor : -1;
  return (
    <div class="grid-frame">
      <div
        ref={box} class="grid-box" tabIndex={0} role="application" aria-roledescription="grid of tasks"
        aria-label={`${positions.length} tasks. Use the arrow keys to move and Enter to open a task. The table view lists the tasks as text.`}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={press}
        onFocus={() => { setFocused(true); if (cursor < 0) setCursor(positions[0] ?? -1); }} onBlur={() => setFocused(false)}
        onMouseMove={(event) => setHovered(positionUnder(event))} onMouseLeave={() => setHovered(-1)}
        onClick={(event) => { const position = positionUnder(event); if (position >= 0) { setCursor(position); open(position); } }}
      >
        <canvas
          ref={canvas} width={Math.round(size.width * ratio)} height={Math.round(size.height * ratio)} aria-hidden="true"
          style={{ width: `${size.width}px`, height: `${size.height}px` }}
        />
        <div style={{ height: `${Math.max(0, geometry.rows * geometry.size - size.height)}px` }} />
      </div>
      <p class="grid-caption small untrusted">
        {described >= 0 ? describe(described) : positions.length === 0 ? 'No task matches the filter.' : 'Point at a cell or use the arrow keys to see its task.'}
      </p>
      <p class="visually-hidden" aria-live="polite">{focused && cursor >= 0 ? describe(cursor) : ''}</p>
    </div>
  );
}
