// What a cell draws comes into view, with its controls, when the reader has run it.
//
// Only in JupyterLab and Notebook 7, and only if running a cell is the last that the reader did: a
// page that opens stays where it is, and so does one that somebody scrolls, or types in, meanwhile.

const LESS_MOTION = window.matchMedia("(prefers-reduced-motion: reduce)")
const MODIFIERS = ["Shift", "Control", "Alt", "Meta"]
const COMMANDS = ".jp-Toolbar, .jp-cell-toolbar, .lm-Menu, .lm-CommandPalette, .jp-Dialog"
const SCROLLERS = ".jp-WindowedPanel-outer, .jp-Notebook"
const RESTING = 150 // milliseconds after which a notebook has scrolled by itself
let isAwaiting = false // whether the reader has run something, and done nothing since

const listen = (event, act) => window.addEventListener(event, act, {capture: true, passive: true})
listen("wheel", () => {
  isAwaiting = false
})
listen("touchmove", () => {
  isAwaiting = false
})
listen("pointerdown", ({target}) => {
  isAwaiting = target instanceof Element && target.closest(COMMANDS) !== null
})
listen("keydown", ({key, shiftKey, ctrlKey, altKey, metaKey}) => {
  const isCommand = shiftKey || ctrlKey || altKey || metaKey
  if (!MODIFIERS.includes(key)) isAwaiting = key === "Enter" && isCommand
})

/** Whether a picture is what the reader waits for: the first of the only cell that runs. */
export function isAwaited(picture) {
  const cell = picture.closest(".jp-CodeCell")
  if (!isAwaiting || cell?.querySelector("cypresskit-picture") !== picture) return false
  const prompts = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")
  const running = [...prompts].filter((prompt) => prompt.textContent.includes("*"))
  return running.length === 1 && cell.contains(running[0])
}

/** Scroll no further than needed to see a picture as a whole; of one that is higher than the
 * notebook, its upper part. */
export async function bringIntoView(picture) {
  await new Promise((resolve) => setTimeout(resolve, RESTING))
  if (!isAwaiting || !picture.isConnected) return
  const whole = picture.closest(".cypresskit-controls") ?? picture
  const room = picture.closest(SCROLLERS)?.clientHeight ?? window.innerHeight
  whole.scrollIntoView({
    block: whole.offsetHeight > room ? "start" : "nearest",
    behavior: LESS_MOTION.matches ? "instant" : "smooth",
  })
}
