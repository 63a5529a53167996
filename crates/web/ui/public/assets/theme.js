// Before the first paint: the theme that was chosen here last, so that nothing flashes.
(() => {
  try {
    const chosen = localStorage.getItem('webgym-theme');
    if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  } catch {
    // No storage here: the system's theme it is.
  }
})();
