// A picture's page and its address. After the "#" stands what to show: a frame, the key of what is chosen (at) and, in a
// journey, the level, as in #level=2&frame=120&at=7; anything else is left alone. The link leads to what is seen now.
const places = [...document.querySelectorAll(".cypresskit-player")]
const crumbs = [...document.querySelectorAll(".cypresskit-journey nav button")]
const link = document.querySelector(".foot a")

function visit() {
  const asked = new URLSearchParams(location.hash.slice(1))
  const number = (name) => /^\d{1,6}$/.test(asked.get(name)) ? Number(asked.get(name)) : undefined
  const level = number("level") ?? 0, frame = number("frame"), place = places[level]
  if (!place || frame === undefined) return
  crumbs[level]?.click()
  place.dataset.go = JSON.stringify({frame, key: number("at")})
  place.dispatchEvent(new Event("cypresskit-go"))
}

function aim() {
  const level = places.findIndex((place) => place.getClientRects().length > 0)
  const {frame, pick} = places[level]?.querySelector("[data-ready]")?.dataset ?? {}
  if (frame) link.href = "#" + new URLSearchParams({...(crumbs.length && {level}), frame, ...(pick && {at: pick})})
}

for (const event of ["pointerenter", "focus", "click"]) link.addEventListener(event, aim)
if (self !== top) link.target = "_blank"  // where there is an address to see
link.hidden = !places.length
addEventListener("hashchange", visit)
visit()
