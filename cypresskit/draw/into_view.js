// Scroll to the picture or workbench of a cell that the reader has just run.
//
// Only in JupyterLab and Notebook 7, and only if the reader did nothing else since: a page that has
// been opened, scrolled or typed into stays where it is.

const LESS_MOTION = window.matchMedia("(prefers-reduced-motion: reduce)")
const MODIFIERS = ["Shift", "Control", "Alt", "Meta"]
const COMMANDS = ".jp-Toolbar, .jp-cell-toolbar, .lm-Menu, .lm-CommandPalette, .jp-Dialog"
const SCROLLERS = ".jp-WindowedPanel-outer, .jp-Notebook"
const SETTLE_MS = 150 // after this time the notebook itself has finished scrolling
let isAwaiting = true // whether running a cell may have been the reader's last action

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

/** Whether the reader waits for a picture: it is the first one of the only running cell. */
export function isAwaited(picture) {
  const cell = picture.closest(".jp-CodeCell")
  if (!isAwaiting || cell?.querySelector("cypresskit-picture") !== picture) return false
  const prompts = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")
  const running = [...prompts].filter((prompt) => prompt.textContent.includes("*"))
  return running.length === 1 && cell.contains(running[0])
}

/** Scroll just far enough to show the whole picture, or its upper part if it doesn't fit. Its cell
 * is the active one or, after Shift and Enter, the one before. */
export async function bringIntoView(picture) {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const cell = picture.closest(".jp-CodeCell")
  const near = [cell, cell?.nextElementSibling]
  if (!isAwaiting || !near.some((one) => one?.matches(".jp-mod-active"))) return
  const whole = picture.closest(".cypresskit-controls") ?? picture
  const room = picture.closest(SCROLLERS)?.clientHeight ?? window.innerHeight
  whole.scrollIntoView({
    block: whole.offsetHeight > room ? "start" : "nearest",
    behavior: LESS_MOTION.matches ? "instant" : "smooth",
  })
}
