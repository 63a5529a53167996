import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useThemeVersion } from '../common/theme';
import { cellAt, fit, moved } from './geometry';
import { Painter } from './paint';

interface Props {
  codes: Uint16Array;
  places: number[];
  version: number;
  zoom: number;
  selected: number;
  describe: (place: number) => string;
  open: (place: number) => void;
}

/** All tasks at once, on a canvas as large as what is visible of them. */
export function Grid({ codes, places, version, zoom, selected, describe, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef(new Painter());
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(0);
  const [cursor, setCursor] = useState(-1);
  const [focused, setFocused] = useState(false);
  const [hovered, setHovered] = useState(-1);
  const theme = useThemeVersion();
  const geometry = fit(places.length, size.width, size.height, zoom);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => painter.current.dress(), [theme]);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || size.width === 0) return;
    const frame = requestAnimationFrame(() =>
      painter.current.paint(context, { codes, places, geometry, ...size, top, cursor, selected, focused }));
    return () => cancelAnimationFrame(frame);
  }, [codes, places, version, geometry.size, geometry.columns, size, top, cursor, selected, focused, theme]);

  const under = (event: MouseEvent): number => {
    const bounds = canvas.current?.getBoundingClientRect();
    const number = bounds ? cellAt(geometry, places.length, event.clientX - bounds.left, event.clientY - bounds.top + top) : -1;
    return places[number] ?? -1;
  };
  const press = (event: KeyboardEvent) => {
    const at = Math.max(0, places.indexOf(cursor));
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (cursor >= 0) open(cursor);
      return;
    }
    const page = Math.max(1, Math.floor(size.height / geometry.size));
    const to = cursor < 0 && event.key.startsWith('Arrow') ? 0 : moved(event.key, at, places.length, geometry, page);
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setCursor(places[to] ?? -1);
    show(to);
  };
  const show = (number: number) => {
    const y = Math.floor(number / geometry.columns) * geometry.size;
    const element = box.current;
    if (!element) return;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + geometry.size > element.scrollTop + size.height) element.scrollTop = y + geometry.size - size.height;
  };
  const ratio = devicePixelRatio || 1;
  const told = hovered >= 0 ? hovered : focused ? cursor : -1;
  return (
    <div class="grid-frame">
      <div
        ref={box} class="grid-box" tabIndex={0} role="application" aria-roledescription="grid of tasks"
        aria-label={`${places.length} tasks. Arrow keys move, Enter opens. The table view lists them as text.`}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={press}
        onFocus={() => { setFocused(true); if (cursor < 0) setCursor(places[0] ?? -1); }} onBlur={() => setFocused(false)}
        onMouseMove={(event) => setHovered(under(event))} onMouseLeave={() => setHovered(-1)}
        onClick={(event) => { const place = under(event); if (place >= 0) { setCursor(place); open(place); } }}
      >
        <canvas
          ref={canvas} width={Math.round(size.width * ratio)} height={Math.round(size.height * ratio)} aria-hidden="true"
          style={{ width: `${size.width}px`, height: `${size.height}px` }}
        />
        <div style={{ height: `${Math.max(0, geometry.rows * geometry.size - size.height)}px` }} />
      </div>
      <p class="grid-words small foreign" data-testid="told">
        {told >= 0 ? describe(told) : places.length === 0 ? 'No task passes the filter.' : 'Point at a cell, or move with the arrow keys.'}
      </p>
      <p class="visually-hidden" aria-live="polite">{focused && cursor >= 0 ? describe(cursor) : ''}</p>
    </div>
  );
}
