// Keeps the workbench's files, so that it works with the network off once it has been loaded.
const KEPT = "$key"
const NAMES = $names

addEventListener("install", (event) => {
  const keep = caches.open(KEPT).then((kept) => kept.addAll(NAMES))
  event.waitUntil(keep.then(() => self.skipWaiting()))
})

addEventListener("activate", (event) => {
  const forget = caches
    .keys()
    .then((all) => all.filter((name) => name.startsWith("cypresskit-") && name !== KEPT))
    .then((old) => Promise.all(old.map((name) => caches.delete(name))))
  event.waitUntil(forget.then(() => self.clients.claim()))
})

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return
  const found = caches.match(event.request, {ignoreSearch: true, cacheName: KEPT})
  event.respondWith(found.then((kept) => kept ?? fetch(event.request)))
})
