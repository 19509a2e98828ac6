// A journey through levels: pictures of which one is visible, with a row of links above them.
import {CALM} from "./player.js"
import {make, takeFocus} from "./shell.js"

/** Start a journey.
 *
 * `levels`: name, hint and links of each level. A link maps a key to [frame, key] of the next level.
 * `start`: the same for the first level. */
export function beginJourney(box, {levels, start}, place, ends) {
  const sections = [...place.querySelectorAll(":scope > section")]
  const nav = make(box, "nav", {"aria-label": "Levels, from the chip to the register"})
  place.prepend(box)
  const links = levels.map(({name}, n) => {
    if (n) nav.append("\u203a")
    return make(nav, "button", {}, name)
  })
  const status = make(nav, "span", {role: "status"})
  let level = 0
  let spot = null // the last click
  place.addEventListener("pointerdown", (event) => {
    if (!nav.contains(event.target)) spot = event
  })
  /** Let a level open around the place that was clicked. It has its full size from the start: a
   * picture that is shown for the first time measures it. */
  const open = (section) => {
    if (!spot || CALM.matches) return
    const {left, top} = section.getBoundingClientRect()
    const center = `${spot.clientX - left}px ${spot.clientY - top}px`
    const clipPath = [`circle(5% at ${center})`, `circle(150% at ${center})`]
    section.animate({clipPath, opacity: [0.2, 1]}, 400)
  }
  const to = (next, link) => {
    level = next
    sections.forEach((section, n) => {
      section.hidden = n !== level
    })
    links.forEach((link, n) => {
      link.setAttribute("aria-current", String(n === level))
    })
    open(sections[level])
    status.textContent = levels[level].hint
    const picture = sections[level].querySelector(".cypresskit-player")
    if (link) {
      picture.dataset.go = JSON.stringify({frame: link[0], key: link[1], focus: level > 0})
      picture.dispatchEvent(new Event("cypresskit-go"))
    } else {
      const player = picture.querySelector("[data-ready]")
      if (player) takeFocus(player)
    }
  }
  to(0, start)
  links.forEach((link, n) => {
    link.addEventListener("click", () => to(n))
  })
  place.addEventListener("cypresskit-enter", (event) => {
    const link = levels[level].links[event.detail.key]
    if (link) {
      event.preventDefault()
      to(level + 1, link)
    } else if (event.detail.key !== null && level + 1 < levels.length) {
      status.textContent = `This part isn't recorded in detail. ${levels[level].hint}`
    }
  })
  // The capture phase, so that the level's own picture doesn't handle Escape first.
  const ear = place.closest(".cypresskit-page") ?? place
  const back = (event) => {
    if (event.key !== "Escape" || level === 0 || event.defaultPrevented) return
    event.preventDefault()
    event.stopPropagation()
    to(level - 1)
  }
  ear.addEventListener("keydown", back, true)
  ends.push(() => ear.removeEventListener("keydown", back, true))
  window.dispatchEvent(new Event("cypresskit-journey"))
}
