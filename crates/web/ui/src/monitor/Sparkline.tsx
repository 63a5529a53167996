const WIDTH = 120;
const HEIGHT = 26;

/** A small line chart without axes that shows a trend. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  if (values.length < 2) return null;
  const max = Math.max(...values, 1e-9);
  const x = (number: number) => (number / (values.length - 1)) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - (value / max) * (HEIGHT - 4);
  const line = values.map((value, number) => `${x(number).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />
      <polyline points={line} />
    </svg>
  );
}
