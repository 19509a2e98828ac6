// How much of what was typed one press of undo takes back: a word, or what came between two pauses.
//
// The edits are the browser's. It would join letters that follow each other, but only where no
// element of the page is removed meanwhile, and each letter redraws this page. So the beginnings of
// runs are marked here, and a step of undo or redo goes on to the next mark.

const RUN_PAUSE = 700 // milliseconds without a key, which end a run
const MOST_IN_RUN = 200 // letters that one press takes back

export class UndoRuns {
  /** @param {HTMLTextAreaElement} area */
  constructor(area) {
    this.area = area
    this.marks = new Set() // of texts at which a run begins
    this.stepping = false
    this.typing = false // whether what comes next was typed, or deleted, alone
    this.run = {kind: "", at: -1, time: 0, blank: false}
    area.addEventListener("beforeinput", (event) => this.begin(event))
    area.addEventListener("input", () => {
      this.run.at = this.typing ? area.selectionEnd : -1
      this.typing = false
    })
  }

  /** A run begins here: undo stops at this text. */
  mark() {
    this.marks.add(digest(this.area.value))
  }

  /** Something is about to be typed or deleted: does it go on with the run? */
  begin({inputType, data}) {
    const {selectionStart: start, selectionEnd: end} = this.area
    const {kind, at, time, blank} = this.run
    const now = performance.now()
    const isBlank = !data?.trim()
    const one = data?.length === 1 || /^deleteContent/.test(inputType)
    const follows = start === end && at === end && kind === inputType && now - time < RUN_PAUSE
    const nextWord = inputType === "insertText" && blank && !isBlank
    if (!one || !follows || nextWord) this.mark()
    this.run = {kind: one ? inputType : "", at, time: now, blank: isBlank}
    this.typing = one
  }

  /** Undo or redo a run. The browser's list of edits is the whole page's: a step that changed
   * nothing here was none of the text's.
   * @param {"undo" | "redo"} which */
  step(which) {
    const {area} = this
    this.mark()
    this.stepping = true
    for (let letters = 0; letters < MOST_IN_RUN; letters++) {
      const before = area.value
      for (let tries = 0; tries < 3 && area.value === before; tries++) document.execCommand(which)
      const change = Math.abs(area.value.length - before.length)
      if (change !== 1 || this.marks.has(digest(area.value))) break
    }
    this.stepping = false
    this.run.at = -1
  }
}

/** A number that stands for a text. */
function digest(text) {
  let sum = text.length
  for (let n = 0; n < text.length; n++) sum = (Math.imul(sum, 31) + text.charCodeAt(n)) | 0
  return sum
}
