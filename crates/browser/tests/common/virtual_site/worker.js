let ticks = 0;
postMessage(`worker ${Math.random()} ${Date.now()} ${crypto.randomUUID?.()} ${new Date().toISOString()}`);
setInterval(() => { ticks += 1; }, 100);
onmessage = (event) => {
  postMessage(`worker ${event.data} ${ticks} ${Math.random()} ${Date.now()}`);
  setTimeout(() => postMessage(`worker later ${ticks} ${Date.now()}`), 400);
};
