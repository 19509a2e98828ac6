// A journey through levels, one of which is seen at a time: pictures in sections, with a line of
// links above them.
import {make, takeFocus} from "./shell.js"

/** Bring a journey to life.
 *
 * `levels`: the name of each level, its hint, and for keys that lead on, where to: a frame and
 * maybe a key. `start`: the same for the first. */
export function beginJourney(box, {levels, start}, place, ends) {
  const sections = [...place.querySelectorAll(":scope > section")]
  const nav = make(box, "nav", {"aria-label": "Levels, from the chip to the register"})
  place.prepend(box)
  const links = levels.map(({name}, n) => {
    if (n) nav.append("\u203a")
    return make(nav, "button", {type: "button"}, name)
  })
  const status = make(nav, "span", {role: "status"})
  let level = 0
  const to = (next, link) => {
    level = next
    sections.forEach((section, n) => {
      section.hidden = n !== level
    })
    links.forEach((link, n) => {
      link.toggleAttribute("aria-current", n === level)
    })
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
    } else if (level + 1 < levels.length) {
      status.textContent = `Not recorded clause by clause. ${levels[level].hint}`
    }
  })
  // Before the level's own picture hears it.
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
