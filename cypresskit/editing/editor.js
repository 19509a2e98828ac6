// The editor of the workbench: a text area over painted lines, with gutters beside it.
//
// The text area is the platform's: its caret, selection, undo and accessibility. Its letters are
// transparent; below it the same lines are painted, with colours by the CSS Custom Highlight API
// (without it they are plain). Left out: wrapped lines, several carets.
import {make, SUPPRESS} from "../draw/shell.js"
import {namesIn, wordAt} from "./il_text.js"
import {PaintedLines} from "./painted_lines.js"
import {UndoRuns} from "./undo_runs.js"

const INDENT = "    "
const OPENS = /^\s*(?:whileloop|if_\w*|ifc\w*|else)\b/
const PAGE_KEYS = {PageUp: -1, PageDown: 1}
const CLOSES = /^\s*(?:endloop|endif|else)$/
const OFFERED = 9 // completions in sight
// What is the editor's with Ctrl or Cmd: undo and redo, the clipboard, moves, and its own.
const OWN = new Set(
  "z y a c v x / arrowleft arrowright arrowup arrowdown home end backspace delete".split(" "),
).add(" ")
// The gutter's columns: class, head, and what it means.
const COLUMNS = [
  ["number", "line", ""],
  ["live", "live", "registers whose value is still needed here; the most, in bold, is what counts"],
  ["price", "price", "how many per cent sooner the launch would end if the line took no time"],
]
const REST = 350 // milliseconds after which the mouse rests on a word

export class Editor {
  /**
   * @param {HTMLElement} parent
   * @param {{label: string, changed: () => void, moved: (line: number) => void,
   *   meaning: (word: string, line: number) => string[] | undefined,
   *   names: (line: number) => string[],
   *   words: {begun: (word: string) => string[][]}}} owner */
  constructor(parent, owner) {
    this.owner = owner
    this.faults = []
    this.free = false // Tab leaves the editor
    this.frame = make(parent, "div", {class: "ckw-frame"})
    const heads = make(this.frame, "div", {class: "ckw-heads", "aria-hidden": "true"})
    for (const [name, text, title] of COLUMNS)
      make(heads, "span", {class: `ckw-${name}`, title}, text)
    this.lines = new PaintedLines(this.frame, (line) => this.goTo(line))
    this.area = /** @type {HTMLTextAreaElement} */ (
      make(this.lines.code, "textarea", {
        class: "ckw-area",
        "aria-label": owner.label,
        "aria-autocomplete": "list",
        autocapitalize: "off",
        autocomplete: "off",
        autocorrect: "off",
        spellcheck: "false",
        wrap: "off",
      })
    )
    this.runs = new UndoRuns(this.area)
    this.replacing = false // whether a command of ours changes the text
    this.offers = new Offers(this)
    this.tip = make(this.frame, "div", {class: "ckw-tip", role: "tooltip", hidden: ""})
    this.listen()
    this.refresh()
  }

  listen() {
    const {area} = this
    area.addEventListener("input", (event) => this.took(/** @type {InputEvent} */ (event)))
    area.addEventListener("keydown", (event) => this.press(event))
    area.addEventListener("blur", () => this.offers.close())
    area.addEventListener("mousemove", (event) => this.rest(event))
    area.addEventListener("mouseleave", () => this.hideTip())
    area.addEventListener("scroll", () => {
      area.scrollTop = 0 // what scrolls is the frame, with the gutters
      area.scrollLeft = 0
    })
    this.onSelection = () => {
      if (this.focused) this.move()
    }
    document.addEventListener("selectionchange", this.onSelection)
    this.onKey = (event) => area.toggleAttribute(SUPPRESS, this.keeps(event))
    window.addEventListener("keydown", this.onKey, true)
    area.addEventListener("keyup", () => this.move())
    area.addEventListener("click", () => this.move())
  }

  end() {
    document.removeEventListener("selectionchange", this.onSelection)
    window.removeEventListener("keydown", this.onKey, true)
    clearTimeout(this.resting)
    this.lines.end()
  }

  /** Whether a key is the editor's, and not a shortcut of the notebook around it, which looks for
   * them before the editor sees the key. */
  keeps(event) {
    if (event.composedPath()[0] !== this.area) return false
    if (!event.ctrlKey && !event.metaKey)
      return !event.altKey && !/^F\d/.test(event.key) && !(event.shiftKey && event.key === "Enter")
    return OWN.has(event.key.toLowerCase())
  }

  get text() {
    return this.area.value
  }

  get focused() {
    return focusIn(this.area) === this.area
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

  /** Show a text without a trace in the undo list: the first one. */
  begin(text) {
    this.area.value = text
    this.placeCaret(1)
    this.refresh()
    this.move()
  }

  /** Set the caret to a line and column, from 1, and leave the focus where it is. */
  placeCaret(line, column = 1) {
    const lines = this.text.split("\n")
    const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0)
    const at = before + Math.min(column - 1, lines[line - 1]?.length ?? 0)
    this.area.setSelectionRange(at, at)
  }

  /** The text has become another, by a key or by a command. */
  took({inputType, data}) {
    if (this.runs.stepping) return
    this.refresh()
    this.owner.changed()
    if (inputType?.startsWith("history")) return this.deselect()
    if (data?.length === 1 && !this.replacing) this.moveOut()
    this.offers.typed()
  }

  /** Take another text over, as an edit that can be undone. */
  take(text) {
    const old = this.text
    let start = 0
    while (start < old.length && old[start] === text[start]) start++
    let tail = 0
    while (
      tail < Math.min(old.length, text.length) - start &&
      old[old.length - 1 - tail] === text[text.length - 1 - tail]
    )
      tail++
    this.replace(start, old.length - tail, text.slice(start, text.length - tail))
  }

  /** Replace a part of the text, so that undo brings it back. */
  replace(start, end, text) {
    const focused = focusIn(this.area)
    const {scroll} = this.lines
    const top = scroll.scrollTop
    this.area.focus({preventScroll: true})
    this.area.setSelectionRange(start, end)
    this.runs.mark()
    this.replacing = true
    const done = text
      ? document.execCommand("insertText", false, text)
      : start === end || document.execCommand("delete")
    this.replacing = false
    if (!done) {
      this.area.setRangeText(text, start, end, "end")
      this.area.dispatchEvent(new Event("input"))
    }
    if (focused && focused !== this.area) {
      this.area.blur() // the page's body doesn't take the focus back
      focused.focus?.({preventScroll: true})
      scroll.scrollTop = top
    }
  }

  refresh() {
    this.lines.write(this.text)
  }

  /** The text is another: its faults may be, too. What is underlined looks old until they come. */
  ageFaults() {
    this.faults = []
    this.lines.ageFaults()
    this.hideTip()
  }

  /** Underline faults: [{line, column, length, message}], columns from 1. */
  paintFaults(faults) {
    this.faults = faults
    this.lines.setFaults(faults)
    this.area.setAttribute("aria-invalid", String(faults.length > 0))
  }

  /** Go to a line and column, with the caret and the focus. */
  goTo(line, column = 1) {
    this.area.focus({preventScroll: true})
    this.placeCaret(line, column)
    this.lines.show(line)
    this.frame.scrollIntoView({block: "nearest"})
    this.lines.showOnPage(line)
    this.move()
  }

  /** Go a page up or down, with the caret, which the browser would leave where it is. */
  turnPage(step) {
    const {line, column} = this.caret
    const to = line + step * (this.lines.inSight - 1)
    this.goTo(Math.max(1, Math.min(to, this.lines.all.length)), column + 1)
  }

  move() {
    const {line, column} = this.caret
    this.lines.showColumn(column)
    if (line === this.lastLine && column === this.lastColumn) return
    this.lastLine = line
    this.lastColumn = column
    this.lines.light(new Set([line]), "here")
    this.owner.moved(line)
  }

  /** Where a line and a column are in the frame: below them there is room for a box. */
  place(line, column) {
    const {left, top} = this.lines.placeOf(line, column)
    const frame = this.frame.getBoundingClientRect()
    return {left: left - frame.left, top: top - frame.top}
  }

  press(event) {
    if (this.offers.press(event)) return
    if (event.ctrlKey || event.metaKey || event.altKey) {
      const key = event.key.toLowerCase()
      if (key === "z" && !event.altKey) this.step(event.shiftKey ? "redo" : "undo")
      else if (key === "y" && !event.altKey) this.step("redo")
      else if (key === " " && event.ctrlKey) this.offers.open(true)
      else if (event.key === "/" && !event.altKey) this.comment()
      else return
      event.preventDefault()
      return
    }
    if (event.key === "Escape") {
      this.free = true
      this.hideTip()
      return
    }
    if (event.key === "Tab" && !this.free) {
      event.preventDefault()
      this.indent(event.shiftKey)
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault()
      this.breakLine()
    } else if (event.key in PAGE_KEYS && !event.shiftKey) {
      event.preventDefault()
      this.turnPage(PAGE_KEYS[event.key])
    }
    if (event.key !== "Shift") this.free = false
  }

  /** Undo or redo a word, or whatever was one edit. */
  step(which) {
    const before = this.text
    this.runs.step(which)
    this.offers.close()
    this.refresh()
    if (this.text !== before) this.owner.changed()
    this.deselect()
  }

  /** Set the caret to what undo brought back, which the browser selects: a key would replace it. */
  deselect() {
    const {selectionStart: start, selectionEnd: end} = this.area
    const at = this.text.slice(start, end).includes("\n") ? start : end
    this.area.setSelectionRange(at, at)
    this.lines.show(this.caret.line)
    this.move()
  }

  /** Move a word that ends a block, or divides it, out to where the block began, when its last
   * letter is typed. */
  moveOut() {
    const {line, column} = this.caret
    const text = this.line(line)
    if (column !== text.length || !CLOSES.test(text)) return
    let open = 1
    let at = line - 1
    while (at > 0) {
      const above = this.line(at)
      if (/^\s*end(?:loop|if)\b/.test(above)) open++
      else if (OPENS.test(above) && !/^\s*else\b/.test(above)) open--
      if (!open) break
      at--
    }
    const indent = (words) => words.match(/^\s*/)[0]
    if (!at || indent(this.line(at)).length >= indent(text).length) return
    const end = this.area.selectionEnd
    this.replace(end - text.length, end, indent(this.line(at)) + text.trimStart())
  }

  /** Begin a line as deep as this one, or deeper after what opens a block. */
  breakLine() {
    const {line, column} = this.caret
    const before = this.line(line).slice(0, column)
    const indent = before.match(/^\s*/)[0] + (OPENS.test(before) ? INDENT : "")
    this.replace(this.area.selectionStart, this.area.selectionEnd, `\n${indent}`)
  }

  /** The first and the last line of the selection. */
  selectedLines() {
    const {selectionStart: start, selectionEnd: end} = this.area
    const first = this.text.slice(0, start).split("\n").length
    return [first, first + this.text.slice(start, end).split("\n").length - 1]
  }

  indent(back) {
    const {selectionStart: start, selectionEnd: end} = this.area
    if (start === end && !back) return this.replace(start, end, INDENT)
    this.changeLines((text) =>
      back ? text.replace(/^ {1,4}|^\t/, "") : text.trim() ? INDENT + text : text,
    )
  }

  comment() {
    const [first, last] = this.selectedLines()
    const all = this.lines.all.slice(first - 1, last).every(({text}) => /^\s*(;|$)/.test(text))
    this.changeLines((text) =>
      all ? text.replace(/^(\s*); ?/, "$1") : text.replace(/^(\s*)(?=\S)/, "$1; "),
    )
  }

  /** Change each line of the selection, as one edit, and select them. */
  changeLines(change) {
    const [first, last] = this.selectedLines()
    const lines = this.text.split("\n")
    const start = lines.slice(0, first - 1).reduce((sum, text) => sum + text.length + 1, 0)
    const old = lines.slice(first - 1, last).join("\n")
    const text = lines
      .slice(first - 1, last)
      .map(change)
      .join("\n")
    if (text === old) return
    this.replace(start, start + old.length, text)
    if (last > first) this.area.setSelectionRange(start, start + text.length)
  }

  rest(event) {
    clearTimeout(this.resting)
    const {clientX, clientY} = event
    this.resting = setTimeout(() => this.showTip(clientX, clientY), REST)
    if (!this.tip.hidden) this.hideTip()
  }

  showTip(x, y) {
    const {line, column} = this.lines.at(x, y)
    const fault = this.faults.find(
      (one) =>
        one.line === line && column >= one.column - 1 && column < one.column - 1 + one.length,
    )
    const word = wordAt(this.line(line), column)
    const meaning = fault
      ? ["", fault.message]
      : word && column < this.line(line).length && this.owner.meaning(word, line)
    if (!meaning) return
    const place = this.place(line, column)
    this.tip.replaceChildren()
    if (meaning[0]) make(this.tip, "b", {}, meaning[0])
    make(this.tip, "span", {}, ` ${meaning[1]}`)
    this.tip.hidden = false
    this.tip.style.left = `${Math.max(4, Math.min(place.left, this.frame.clientWidth - 330))}px`
    this.tip.style.top = `${place.top + 4}px`
  }

  hideTip() {
    clearTimeout(this.resting)
    this.tip.hidden = true
  }
}

/** The completions on offer below the caret. */
class Offers {
  /** @param {Editor} editor */
  constructor(editor) {
    this.editor = editor
    this.id = `ckw-offers-${Math.random().toString(36).slice(2)}`
    this.box = make(editor.frame, "ul", {
      class: "ckw-offers",
      id: this.id,
      role: "listbox",
      "aria-label": "Completions",
      hidden: "",
    })
    this.found = []
  }

  get isOpen() {
    return !this.box.hidden
  }

  /** After a letter: offer opcodes where one begins, and inputs of the chip. */
  typed() {
    const {line, column} = this.editor.caret
    const before = this.editor.line(line).slice(0, column)
    const after = this.editor.line(line).slice(column)
    if (/^\s*[A-Za-z_]\w+$|[\s,]v[A-Z]\w*$/.test(before) && !/^\w/.test(after)) this.open(false)
    else this.close()
  }

  open(asked) {
    const {editor} = this
    const {line, column} = editor.caret
    const before = editor.line(line).slice(0, column)
    const [, indent, opcode] = before.match(/^(\s*)(\w*)$/) ?? []
    const word = opcode ?? before.match(/[A-Za-z]\w*(?:\[\d*)?$/)?.[0] ?? ""
    this.start = editor.area.selectionEnd - word.length
    if (indent !== undefined) this.found = editor.owner.words.begun(word).map(([name]) => name)
    else this.found = editor.owner.names(line).filter((name) => name.startsWith(word))
    this.found = this.found.filter((name) => asked || name !== word)
    const exact = editor.owner.words.begun(word)[0]?.[0] === word
    if (!this.found.length || (!asked && exact)) return this.close()
    this.chosen = 0
    this.fill()
    const {left, top} = editor.place(line, column - word.length)
    this.box.hidden = false
    this.box.style.left = `${Math.min(left, editor.frame.clientWidth - 260)}px`
    const below = top + this.box.offsetHeight <= editor.frame.clientHeight
    this.box.style.top = below ? `${top}px` : `${top - 22 - this.box.offsetHeight}px`
    editor.area.setAttribute("aria-controls", this.id)
  }

  fill() {
    this.box.replaceChildren()
    const first = Math.max(0, Math.min(this.chosen - 4, this.found.length - OFFERED))
    this.found.slice(first, first + OFFERED).forEach((name, n) => {
      const chosen = first + n === this.chosen
      const item = make(this.box, "li", {
        id: `${this.id}-${first + n}`,
        role: "option",
        "aria-selected": String(chosen),
      })
      make(item, "code", {}, name)
      const meaning = this.editor.owner.meaning(name, this.editor.caret.line)
      make(item, "span", {}, meaning?.[1] ?? "")
      item.addEventListener("mousedown", (event) => {
        event.preventDefault()
        this.chosen = first + n
        this.accept()
      })
    })
    this.editor.area.setAttribute("aria-activedescendant", `${this.id}-${this.chosen}`)
  }

  close() {
    if (!this.isOpen) return
    this.box.hidden = true
    this.editor.area.removeAttribute("aria-activedescendant")
    this.editor.area.removeAttribute("aria-controls")
  }

  accept() {
    const name = this.found[this.chosen]
    this.editor.replace(this.start, this.editor.area.selectionEnd, name)
    this.editor.moveOut()
    this.close()
  }

  /** Take a key, if it is for the list. */
  press(event) {
    if (!this.isOpen || event.ctrlKey || event.altKey || event.metaKey) return false
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: OFFERED, PageUp: -OFFERED}
    if (event.key in steps) {
      const next = this.chosen + steps[event.key]
      this.chosen = Math.max(0, Math.min(next, this.found.length - 1))
      this.fill()
    } else if (event.key === "Enter" || event.key === "Tab") this.accept()
    else if (event.key === "Escape") this.close()
    else return false
    event.preventDefault()
    event.stopPropagation()
    return true
  }
}

/** The registers and other names that may follow, those of the line's live registers first. */
export function namesFor(text, live) {
  return [...new Set([...live, ...namesIn(text)])]
}

/** What has the focus on the page, or in the shadow tree, that an element is in.
 * @returns {HTMLElement | null} */
function focusIn(element) {
  const root = /** @type {Document | ShadowRoot} */ (element.getRootNode())
  return /** @type {HTMLElement | null} */ (root.activeElement ?? null)
}
