// Answers the greeting itself, so that a page can tell who is there.
self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  if (new URL(event.request.url).pathname === '/course/service-worker/greeting') {
    event.respondWith(new Response('hello from the worker'));
  }
});
