// Shared by the obstacles: shows in the page what happened.
function log(text) {
  const out = document.getElementById('log');
  if (!out) return;
  out.append(text + '\n');
  out.dataset.count = Number(out.dataset.count || 0) + 1;
  out.dataset.last = text;
  out.scrollTop = out.scrollHeight;
}

// Sends a log entry from a page inside a frame to the outermost page.
function tellTop(text) {
  top.postMessage({ courseLog: text }, '*');
}

addEventListener('message', (event) => {
  if (event.data && typeof event.data.courseLog === 'string') log(event.data.courseLog);
});

// An element with data-say logs that text when it is clicked.
addEventListener('click', (event) => {
  const said = event.target.closest && event.target.closest('[data-say]');
  if (said) log(said.dataset.say);
});

function finish(text) {
  document.getElementById('result').textContent = text || 'done';
}
