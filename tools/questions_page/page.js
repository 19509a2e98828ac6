// Slides: one question at a time, first without its answer. Without a script all are shown.

export {} // a module: its names are its own

const sections = [...document.querySelectorAll("section")]
let at = 0

/** Show a slide. @param {number} number @param {boolean} [isAsked] without the answer */
function show(number, isAsked = true) {
  at = Math.max(0, Math.min(number, sections.length - 1))
  for (const [n, section] of sections.entries()) section.hidden = n !== at
  sections[at].classList.toggle("asked", isAsked && at > 0)
  sections[at].focus() // what a screen reader reads
  history.replaceState(null, "", `#${sections[at].id}`)
}

function go() {
  const isAsked = sections[at].classList.contains("asked")
  if (isAsked) sections[at].classList.remove("asked")
  else if (at < sections.length - 1) show(at + 1)
}

function back() {
  const isAnswered = at > 0 && !sections[at].classList.contains("asked")
  show(isAnswered ? at : at - 1)
}

const keys = {
  ArrowRight: go,
  ArrowDown: go,
  PageDown: go,
  " ": go,
  ArrowLeft: back,
  ArrowUp: back,
  PageUp: back,
  Home: () => show(0),
}

/** Show the slide that the address names. */
function follow() {
  show(sections.findIndex((section) => section.id === location.hash.slice(1)))
}

follow()
addEventListener("hashchange", follow)
addEventListener("keydown", (event) => {
  const act = keys[event.key]
  if (!act || event.altKey || event.ctrlKey || event.metaKey) return
  act()
  event.preventDefault()
})
