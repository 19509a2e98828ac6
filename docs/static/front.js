// The first page. Each picture plays once, as soon as it is in view, without taking the keyboard's
// focus. The first one begins at its tenth second. It repeats a few times, until the reader
// touches the page. A button shows all pictures, one after another.

const BEGUN = 80 // the frame of the first picture's tenth second
const AGAIN = 3 // times that the first picture begins again by itself
const REST = 4_000 // milliseconds that its last frame is shown
const STEP = 20_000 // milliseconds for each picture of the minute
const PITCHES = [16, 18, 20, 17] // that the minute lays rows out by
const SEEN = 0.6 // share of a picture, or of the screen
const CALM = matchMedia("(prefers-reduced-motion: reduce)")

/** The page's pictures; those within a journey are its own. */
const pictures = () => {
  const all = document.querySelectorAll("article cypresskit-picture:not(cypresskit-picture *)")
  return /** @type {HTMLElement[]} */ ([...all])
}
const isReady = (picture) => Boolean(picture.querySelector("[data-ready]"))

/** The player that is seen in a picture; a journey has several. */
const playerIn = (picture) => {
  const players = [...picture.querySelectorAll(".cypresskit-player")]
  if (picture.matches(".cypresskit-player")) players.unshift(picture)
  return players.find((player) => player.getClientRects().length)
}

/** Play a picture from a frame on. */
function play(picture, frame) {
  const player = playerIn(picture)
  if (!player) return
  if (frame !== undefined) {
    player.dataset.go = JSON.stringify({frame})
    player.dispatchEvent(new Event("cypresskit-go"))
  }
  player.dispatchEvent(new Event("cypresskit-play"))
}

// A picture is in view if most of it is, or if it fills most of the screen.
const sight = new IntersectionObserver(
  (found) =>
    found
      .filter(
        ({intersectionRatio, intersectionRect}) =>
          intersectionRatio >= SEEN || intersectionRect.height >= SEEN * innerHeight,
      )
      .forEach(begin),
  {threshold: Array.from({length: 21}, (_, n) => n / 20)},
)
function begin({target}) {
  if (!isReady(target)) return setTimeout(begin, 100, {target})
  sight.unobserve(target)
  const isFirst = target === pictures()[0]
  play(target, isFirst ? BEGUN : undefined)
  if (isFirst && !CALM.matches) repeat(target, AGAIN)
}

/** Play a picture `times` more times, each after a pause at its end. The first key, click or touch
 * on the page ends that. */
function repeat(picture, times) {
  let left = times
  let stood = 0
  const look = setInterval(() => {
    const isPlaying = Boolean(playerIn(picture)?.querySelector("[data-playing=yes]"))
    stood = isPlaying ? 0 : stood + 500
    if (stood < REST) return
    stood = 0
    left -= 1
    play(picture, 0)
    if (!left) clearInterval(look)
  }, 500)
  for (const hand of ["keydown", "pointerdown", "touchstart"])
    addEventListener(hand, () => clearInterval(look), {once: true})
}

for (const picture of pictures()) sight.observe(picture)

// -- the minute

const minute = /** @type {HTMLButtonElement} */ (document.querySelector("#minute"))
const announced = document.querySelector("#minute-status")
let ends = []

/** Show a picture for its part of the minute, and what moves in it. */
function show(number) {
  const all = pictures()
  const picture = all[number]
  const title = picture.previousElementSibling?.querySelector("strong")?.textContent ?? ""
  announced.textContent = `${number + 1} of ${all.length}: ${title}`
  picture.scrollIntoView({behavior: CALM.matches ? "auto" : "smooth", block: "center"})
  play(picture, 0)
  const pitch = /** @type {HTMLInputElement} */ (picture.querySelector("input[type=number]"))
  if (!pitch) return
  PITCHES.forEach((words, n) => {
    const lay = () => {
      pitch.value = String(words)
      pitch.dispatchEvent(new Event("change"))
    }
    ends.push(setTimeout(lay, (n * STEP) / PITCHES.length))
  })
}

/** End the minute. */
function stop(why = "") {
  ends.forEach(clearTimeout)
  ends = []
  announced.textContent = why
  minute.textContent = "Play the minute"
}

if (minute) {
  minute.hidden = false
  minute.addEventListener("click", () => {
    if (ends.length) return stop("Stopped.")
    minute.textContent = "Stop"
    pictures().forEach((_, number) => {
      ends.push(setTimeout(show, number * STEP, number))
    })
    ends.push(setTimeout(stop, pictures().length * STEP, "That was the minute."))
  })
  // The reader goes on alone.
  for (const hand of ["wheel", "touchmove", "keydown", "pointerdown"])
    addEventListener(hand, ({target}) => {
      if (ends.length && target !== minute) stop("Stopped: go on by yourself.")
    })
}

// -- the way to the workbench: what it needs most comes once its link is about to be followed

const HEAVY = ["python.wasm.gz", "library.zip.gz", "source.json.gz", "kernels.json.gz"]
const way = /** @type {HTMLAnchorElement} */ (document.querySelector(".ways a[href^='bench/']"))
let isComing = false
function fetchAhead() {
  if (isComing || location.protocol === "file:") return
  isComing = true
  for (const name of HEAVY) {
    const link = document.createElement("link")
    link.rel = "prefetch"
    link.href = new URL(name, way.href).href
    document.head.append(link)
  }
}
for (const sign of ["pointerenter", "touchstart", "focus"])
  way?.addEventListener(sign, fetchAhead, {passive: true})
