// What a chart's elements do on an event. `handler` in scripts.py makes an attribute of each, so that
// none may use anything outside of it.

/** Put the drawings, for a column and for a phone, in the place of their image. */
export function putDrawings(image) {
  const sources = [image.src, image.previousElementSibling.srcset]
  image.parentNode.outerHTML = sources.map((source) => atob(source.split(",")[1])).join("")
}

/** Arrow keys go from one mark of a group to the next. Its words are said. */
export function chooseMark(drawing, event) {
  const way = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key]
  const group = event.target
  if (!way || !group.dataset.group) return
  event.preventDefault()
  const marks = [...group.children]
  const at = marks.findIndex((mark) => mark.matches(".now"))
  marks[at]?.classList.remove("now")
  const now = marks[Math.max(0, Math.min(marks.length - 1, at + way))]
  now.classList.add("now")
  drawing.closest("div.ck-chart").querySelector("[role=status]").textContent = now.dataset.words
}

/** Tell what the mark is that is pointed at, or has the focus: of a group, the one that was tapped, the
 * chosen one or the first. */
export function tellMark(drawing, {target}) {
  const said = drawing.closest("div.ck-chart")?.querySelector("[role=status]")
  const chosen = [".point:hover", ".now", "*"].map((one) => target.querySelector(one))
  const mark = target.closest(".point") ?? chosen.find((one) => one)
  if (said) said.textContent = mark?.dataset.words ?? ""
}

/** Draw the result over a guess. */
export function drawResult(button) {
  button.disabled = true
  button.closest(".ck-chart").dataset.drawn = ""
}
