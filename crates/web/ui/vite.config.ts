import { defineConfig } from 'vitest/config';

// One project, two pages. Addresses are relative, so the pages work under any path prefix; nothing is inlined,
// so that the strictest Content-Security-Policy lets them run.
export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: { input: { monitor: 'monitor.html', viewer: 'viewer.html' } },
  },
  test: { include: ['src/**/*.test.ts'] },
});
