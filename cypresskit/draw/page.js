// A picture's page and its address. The part after "#" selects a frame, a key (at) and, in a journey,
// a level, as in #level=2&frame=120&at=7. Anything else is ignored. The link leads to what is
// currently visible.
;(() => {
  /** @returns {HTMLElement[]} */
  const all = (selector) => [...document.querySelectorAll(selector)]
  const places = all(".cypresskit-player")
  const link = /** @type {HTMLAnchorElement} */ (document.querySelector(".foot a"))
  const crumbs = () => all(".cypresskit-journey nav button")

  function visit() {
    const parameters = new URLSearchParams(location.hash.slice(1))
    const number = (name) =>
      /^\d{1,6}$/.test(parameters.get(name)) ? Number(parameters.get(name)) : undefined
    const level = number("level") ?? 0
    const frame = number("frame")
    const place = places[level]
    if (!place || frame === undefined) return
    crumbs()[level]?.click()
    place.dataset.go = JSON.stringify({frame, key: number("at")})
    place.dispatchEvent(new Event("cypresskit-go"))
  }

  function aim() {
    const level = places.findIndex((place) => place.getClientRects().length > 0)
    const player = /** @type {HTMLElement} */ (places[level]?.querySelector("[data-ready]"))
    const {frame, pick} = player?.dataset ?? {}
    if (!frame) return
    const address = new URLSearchParams(crumbs().length ? {level: String(level), frame} : {frame})
    if (pick) address.set("at", pick)
    link.href = `#${address}`
  }

  for (const event of ["pointerenter", "focus", "click"]) link.addEventListener(event, aim)
  if (window.self !== window.top) {
    link.target = "_blank" // a frame's address isn't visible
    const tell = () => parent.postMessage(document.documentElement.scrollHeight, "*")
    new ResizeObserver(tell).observe(document.body)
  }
  link.hidden = !places.length
  addEventListener("hashchange", visit)
  addEventListener("cypresskit-journey", visit)
  visit()
})()
