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
    // Without storage the choice lasts until the page is closed.
  }
  document.dispatchEvent(new Event('themechange'));
}

/** A button that switches between the system theme, light and dark. */
export function ThemeToggle() {
  const [theme, setTheme] = useState<Theme>(stored);
  const toggle = () => {
    const next = NEXT[theme];
    apply(next);
    setTheme(next);
  };
  return (
    <button type="button" onClick={toggle} title="Switch between system theme, light and dark">
      Theme: {theme}
    </button>
  );
}

/** Calls back whenever the current colours may have changed, for code that paints on a canvas. */
export function onThemeChange(changed: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', changed);
  document.addEventListener('themechange', changed);
  return () => {
    system.removeEventListener('change', changed);
    document.removeEventListener('themechange', changed);
  };
}

/** Returns the current value of a colour variable such as `--accent` in a form that a canvas accepts. */
export function colour(name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Returns a number that increases with every change of theme, as a dependency for repainting. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => onThemeChange(() => setVersion((before) => before + 1)), []);
  return version;
}
