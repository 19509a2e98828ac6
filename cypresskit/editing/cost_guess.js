// The question of a step: which line costs the most? The costs open once the reader has guessed.
import {make} from "../draw/shell.js"

const QUESTION =
  "Which line costs the most? Click its number, or put the caret into that line and press "

export class CostGuess {
  /**
   * @param {HTMLElement} parent
   * @param {import("./editor.js").Editor} editor
   * @param {{isAsked: boolean, note: (text: string) => void, done: () => void}} owner `done` is
   *   called once a line is guessed */
  constructor(parent, editor, owner) {
    this.editor = editor
    this.owner = owner
    this.isOpen = owner.isAsked // the question, until the reader has guessed
    this.early = 0 // the line that was guessed before there are costs
    /** @type {Record<string, any> | undefined} */
    this.costs = undefined // of this text
    const attributes = {class: "ckw-prompt ckw-of-clocks", role: "status", hidden: ""}
    this.prompt = make(parent, "p", attributes)
  }

  /** The text has changed. */
  forget() {
    this.prompt.hidden = true
    this.early = 0
    this.costs = undefined
  }

  /** Ask, unless the reader has guessed. */
  ask() {
    if (!this.isOpen || this.early) return
    this.prompt.hidden = false
    this.prompt.textContent = QUESTION
    const onclick = () => {
      const {line, column} = this.editor.caret
      this.guess(line)
      this.editor.goTo(line, column + 1) // the button goes, the focus stays
    }
    make(this.prompt, "button", {onclick}, "This line")
  }

  /** The costs are known. */
  know(costs) {
    this.costs = costs
    if (!costs.costliest.length) this.prompt.hidden = true
    if (this.early) this.guess(this.early)
  }

  /** The reader has opened the costs: there is nothing to guess. */
  close() {
    if (this.isOpen) this.prompt.hidden = true
    this.isOpen = false
  }

  /** Take a line as the reader's guess, if the page asks for one. */
  guess(line) {
    if (this.prompt.hidden || !this.isOpen) return
    if (!this.costs) {
      this.early = line
      this.prompt.textContent = `Your guess is line ${line}: its cost comes soon.`
      return
    }
    this.early = 0
    if (!this.costs.lines.some((row) => row.line === line)) {
      this.owner.note(`Line ${line} takes no time by itself.`)
      this.ask()
      return
    }
    this.isOpen = false
    const verdict = this.costs.costliest.includes(line) ? "correct" : "incorrect"
    this.prompt.textContent = `Your guess, line ${line}, is ${verdict}.`
    this.owner.done()
  }
}
