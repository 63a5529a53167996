import { useEffect, useState } from 'preact/hooks';

const KEY = 'webgym-theme';
export type Theme = 'auto' | 'light' | 'dark';
const NEXT: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };

function stored(): Theme {
  try {
    const chosen = localStorage.getItem(KEY);
    return chosen === 'light' || chosen === 'dark' ? chosen : 'auto';
  } catch {
    return 'auto';
  }
}

function apply(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It lasts as long as this page, then.
  }
  document.dispatchEvent(new Event('themechange'));
}

/** A button that goes through: as the system has it, light, dark. */
export function ThemeToggle() {
  const [theme, setTheme] = useState<Theme>(stored);
  const press = () => {
    const next = NEXT[theme];
    apply(next);
    setTheme(next);
  };
  return (
    <button type="button" onClick={press} title="Switch between the system's theme, light and dark">
      <span class="visually-hidden">Theme: </span>
      {theme}
    </button>
  );
}

/** Calls back whenever the colours in effect may have changed: for whoever paints by hand. */
export function onThemeChange(changed: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', changed);
  document.addEventListener('themechange', changed);
  return () => {
    system.removeEventListener('change', changed);
    document.removeEventListener('themechange', changed);
  };
}

/** The value in effect of a colour variable such as `--accent`, as a canvas understands it. */
export function colour(name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** A number that goes up with every change of theme, to repaint by. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => onThemeChange(() => setVersion((before) => before + 1)), []);
  return version;
}
