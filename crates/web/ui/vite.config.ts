import { defineConfig } from 'vitest/config';

// One project with three pages. URLs are relative, so that the pages work under any path prefix; nothing is inlined, so that
// the pages work with a strict Content-Security-Policy.
export default defineConfig({
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: { input: { monitor: 'monitor.html', loop: 'loop.html', viewer: 'viewer.html' } },
  },
  test: { include: ['src/**/*.test.ts'] },
});
