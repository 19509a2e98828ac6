// Undo and redo of a text area, by words: the browser's own ends when a script sets the text.

const MAX_STATES = 200
const JOINED = ["insertText", "deleteContentBackward", "deleteContentForward"] // kinds of changes

export class Undo {
  /** @param {HTMLTextAreaElement} area with its first text */
  constructor(area) {
    this.area = area
    this.states = [{text: area.value, caret: 0}]
    this.at = 0 // the state that is shown
    this.kind = "" // of the last change
  }

  /** The text has changed. A word with the blanks after it is one step; so are letters that are
   * deleted one after another, and any other change.
   * @param {string} [kind] its `inputType` */
  note(kind = "") {
    const {value: text, selectionEnd: caret} = this.area
    const last = this.states[this.at]
    const more = text.length - last.text.length
    const follows = caret === last.caret + (kind.endsWith("Forward") ? 0 : more)
    const isNewWord = more > 0 && /^\s\S/.test(text.slice(caret - more - 1, caret))
    const joins = JOINED.includes(kind) && kind === this.kind && more && follows
    const before = this.states.slice(0, joins && !isNewWord ? this.at : this.at + 1)
    this.states = [...before, {text, caret}].slice(-MAX_STATES)
    this.at = this.states.length - 1
    this.kind = kind
  }

  /** Show the state before (-1) or after (1). Returns whether there is one. */
  step(by) {
    const [now, next] = [this.states[this.at], this.states[this.at + by]]
    if (!next) return false
    const caret = by > 0 ? next.caret : now.caret + next.text.length - now.text.length
    this.area.value = next.text
    this.area.setSelectionRange(caret, caret)
    this.at += by
    this.kind = ""
    return true
  }
}
