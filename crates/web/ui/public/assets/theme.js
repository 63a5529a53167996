// Runs before the first paint and applies the theme chosen last, so that the page does not flash.
(() => {
  try {
    const chosen = localStorage.getItem('webgym-theme');
    if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  } catch {
    // Without storage, use the system theme.
  }
})();
