// The first page's pictures play as soon as they are seen, each once, and without taking the keys.
const sight = new IntersectionObserver(
  (found) => found.filter((one) => one.isIntersecting).forEach(begin),
  {threshold: 0.6},
)
function begin({target}) {
  if (!target.querySelector("[data-ready]")) return setTimeout(begin, 100, {target})
  sight.unobserve(target)
  target.dispatchEvent(new Event("cypresskit-play"))
}
for (const place of document.querySelectorAll(".cypresskit-player"))
  if (place.getClientRects().length) sight.observe(place)
