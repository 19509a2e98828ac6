// The editor of the workbench: a text area with transparent letters over painted lines, with
// gutters beside it.
//
// The text area brings the caret, selection, scrolling, input methods and accessibility. The
// painted lines are colored by the CSS Custom Highlight API (without it they are plain). Lines are
// not wrapped.

import {codeOf} from "../draw/il_colors.js"
import {keepKeys, make} from "../draw/shell.js"
import {PaintedLines} from "./painted_lines.js"
import {Undo} from "./undo.js"

// The keys that the editor uses with Ctrl or Cmd: undo and redo, the clipboard, and moves.
const OWN = /^([zyacvx]|arrow.*|home|end|backspace|delete|enter)$/i
const NEAR = 30 // columns that are visible from the left edge
const INDENT = "    "
const LEAVES = "F2 speaks a word's meaning. Tab indents. Escape, then Tab, leaves the editor."
const CHECKED = "The text is checked as you type: the cell needn't run again."

export class Editor {
  /**
   * @param {HTMLElement} parent
   * @param {string} text
   * @param {{label: string, changed: () => void, moved: (line: number) => void,
   *   picked: (line: number) => void, note: (text: string) => void, explain: () => void}} owner
   *   `picked` is called when a line's number is clicked, `note` with a message, `explain` to speak
   *   what the caret's word means */
  constructor(parent, text, owner) {
    this.owner = owner
    this.frame = make(parent, "div", {class: "ckw-frame"})
    const picked = (line) => {
      this.goTo(line)
      owner.picked(line)
    }
    const attributes = {
      class: "ckw-area",
      "aria-label": owner.label,
      autocapitalize: "off",
      autocomplete: "off",
      autocorrect: "off",
      spellcheck: "false",
      wrap: "off",
      oninput: ({inputType}) => {
        this.undo.note(inputType)
        this.changed()
      },
      // JupyterLab listens here, too, and would keep undo and Enter from the editor.
      onbeforeinput: (event) => event.stopImmediatePropagation(),
      onkeydown: (event) => this.press(event),
      onselectionchange: () => this.move(),
      onkeyup: () => this.move(), // in a shadow tree nothing says that the selection has changed
      onclick: () => this.move(),
    }
    this.lines = new PaintedLines(this.frame, attributes, picked)
    this.area = this.lines.area
    this.keys = make(this.lines.heads, "span", {class: "ckw-keys"}, LEAVES)
    const taps = make(parent, "p", {class: "ckw-taps"})
    make(taps, "button", {onclick: () => this.repeat()}, "Add a line like the one above")
    make(taps, "button", {onclick: () => this.goBack(true)}, "Undo")
    keepKeys(this.area, keeps)
    this.area.value = text
    this.placeCaret(1)
    this.undo = new Undo(this.area)
    this.lines.write(text)
  }

  get text() {
    return this.area.value
  }

  /** The caret's line, from 1, and column, from 0. */
  get caret() {
    const {selectionStart, selectionEnd, selectionDirection} = this.area
    const at = selectionDirection === "backward" ? selectionStart : selectionEnd
    const before = this.text.slice(0, at).split("\n")
    return {line: before.length, column: before.at(-1).length}
  }

  line(number) {
    return this.lines.all[number - 1]?.text ?? ""
  }

  /** The reader has changed the text. */
  changed() {
    this.lines.write(this.text)
    this.owner.changed()
  }

  /** Show a text from elsewhere. The caret stays in its line, if possible. */
  begin(text) {
    const {line, column} = this.caret
    this.area.value = text
    this.placeCaret(line, column + 1)
    this.undo.note()
    this.lines.write(text)
    this.move()
  }

  /** Set the caret to a line and column, from 1, without moving the focus. */
  placeCaret(line, column = 1) {
    const lines = this.text.split("\n")
    line = Math.min(line, lines.length)
    const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0)
    const at = before + Math.min(column - 1, lines[line - 1]?.length ?? 0)
    this.area.setSelectionRange(at, at)
  }

  /** Underline faults, at their `line` and `column`, from 1; without a column, the whole line. */
  paintFaults(faults) {
    const byLine = new Map()
    for (const {line} of faults) byLine.set(line, [])
    for (const fault of faults) byLine.get(fault.line).push(fault)
    this.lines.know("faults", byLine)
    this.area.setAttribute("aria-invalid", String(faults.length > 0))
  }

  /** Go to a line, and a column or its first letter, with the caret and the focus. */
  goTo(line, column = Math.max(1, this.line(line).search(/\S/) + 1)) {
    this.area.focus({preventScroll: true})
    this.placeCaret(line, column)
    this.lines.show(line, column)
    this.frame.scrollIntoView({block: "nearest"})
    this.lines.showOnPage(line)
    this.move()
  }

  move() {
    const {line, column} = this.caret
    if (column < NEAR) this.area.scrollLeft = 0
    if (line === this.lines.here && column === this.lastColumn) return
    this.lastColumn = column
    this.lines.here = line
    this.owner.moved(line)
  }

  press(event) {
    const {shiftKey} = event
    const key = event.key.toLowerCase()
    const command = event.ctrlKey || event.metaKey
    const leaves = this.escaped && key === "tab"
    if (key !== "shift") this.escaped = key === "escape"
    if (leaves || event.altKey || event.isComposing) return
    if (key === "enter" && (shiftKey || command)) this.owner.note(CHECKED)
    else if (command && (key === "z" || key === "y")) this.goBack(key === "z" && !shiftKey)
    else if (command) return
    else if (key === "f2") this.owner.explain()
    else if (key === "tab") this.indent(shiftKey)
    else if (key === "enter") this.breakLine()
    else return
    event.preventDefault()
  }

  /** Undo a step, or redo one. */
  goBack(undo) {
    if (this.undo.step(undo ? -1 : 1)) this.changed()
    this.lines.show(this.caret.line)
  }

  /** Put a text in place of the selection. */
  insert(text) {
    const {selectionStart, selectionEnd} = this.area
    this.area.setRangeText(text, selectionStart, selectionEnd, "end")
    this.undo.note()
    this.changed()
    this.lines.show(this.caret.line)
  }

  /** Indent at the caret, or indent or unindent the selected lines. */
  indent(back) {
    const {selectionStart: start, selectionEnd: end} = this.area
    const first = this.text.lastIndexOf("\n", start - 1) + 1
    const selected = this.text.slice(start, end).includes("\n")
    if (!back && !selected) {
      this.insert(INDENT.slice((start - first) % INDENT.length))
      return
    }
    const rest = this.text.indexOf("\n", end)
    const last = rest < 0 ? this.text.length : rest
    const lines = this.text.slice(first, last).split("\n")
    const changed = lines.map((line) => (back ? line.replace(/^(\t| {1,4})/, "") : INDENT + line))
    if (changed.join() === lines.join()) return
    this.area.setSelectionRange(first, last)
    this.insert(changed.join("\n"))
    if (selected) this.area.setSelectionRange(first, first + changed.join("\n").length)
  }

  /** Insert below the caret's line the last instruction from there up: a line to change. */
  repeat() {
    const lines = this.text.split("\n").slice(0, this.caret.line)
    const above = lines.map(codeOf).findLast((code) => code.trim()) ?? ""
    this.placeCaret(lines.length, Number.POSITIVE_INFINITY)
    this.insert(`\n${above.trimEnd()}`)
  }

  /** Insert a line break and the line's indent. */
  breakLine() {
    const before = this.text.slice(0, this.area.selectionStart)
    const indent = before.slice(before.lastIndexOf("\n") + 1).match(/^[ \t]*/)
    this.insert(`\n${indent}`)
  }
}

/** Return whether a key is for the editor, not a shortcut of the notebook, which sees it first.
 * @param {KeyboardEvent} event */
function keeps({key, ctrlKey, metaKey, altKey, shiftKey}) {
  if (ctrlKey || metaKey) return OWN.test(key) && !(shiftKey && /^c$/i.test(key)) // commands
  return !altKey && !/^F\d/.test(key)
}
