// Answers the greeting instead of the server, so that a page can detect the worker.
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (new URL(event.request.url).pathname === '/course/service-worker/greeting') {
    event.respondWith(new Response('hello from the worker'));
  }
});
