// Caches the files of a page: of the workbench, or the site's first. It then works without a network.
const CACHE = "$key"
const NAMES = $names
const KIND = CACHE.slice(0, CACHE.lastIndexOf("-") + 1)

addEventListener("install", (event) => {
  const filled = caches.open(CACHE).then((cache) => cache.addAll(NAMES))
  event.waitUntil(filled.then(() => self.skipWaiting()))
})

addEventListener("activate", (event) => {
  const cleared = caches
    .keys()
    .then((all) => all.filter((name) => name.startsWith(KIND) && name !== CACHE))
    .then((old) => Promise.all(old.map((name) => caches.delete(name))))
  event.waitUntil(cleared.then(() => self.clients.claim()))
})

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return
  const found = caches.match(event.request, {ignoreSearch: true, cacheName: CACHE})
  event.respondWith(found.then((reply) => reply ?? fetch(event.request)))
})
