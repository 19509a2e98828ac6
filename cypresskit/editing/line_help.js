// The line below the editor: what the caret's line means and costs; or a note, until the text
// changes.
import {make} from "../draw/shell.js"
import {makeSentence, wordAt} from "./il_text.js"

const MAX_LINES = 8 // that a sentence names

export class LineHelp {
  /**
   * @param {HTMLElement} parent
   * @param {import("./editor.js").Editor} editor
   * @param {RegExp} token finds the words of a line
   * @param {() => boolean} tellsCosts whether the reader may see them */
  constructor(parent, editor, token, tellsCosts) {
    this.editor = editor
    this.token = token
    this.tellsCosts = tellsCosts
    this.meanings = new Map() // their names and meanings, of all texts
    this.box = make(parent, "p", {class: "ckw-help"})
    this.notes = make(parent, "p", {class: "ckw-help ckw-note", role: "status"})
  }

  /** Show a note. */
  note(text) {
    this.notes.textContent = text
  }

  /** The text has changed. */
  forget() {
    if (this.box.querySelector(".ckw-bad")) this.box.replaceChildren()
    this.note("")
  }

  learn(meanings) {
    for (const [word, meaning] of Object.entries(meanings)) this.meanings.set(word, meaning)
  }

  /** Explain the caret's line, by the answer on the text. */
  show({faults = [], registers = []} = {}) {
    const {line, column} = this.editor.caret
    const text = this.editor.line(line)
    const words = [wordAt(text, column, this.token), text.trim().split(/[\s,]/)[0]]
    const meaning = words.map((word) => word && this.meaning(word, line, registers)).find(Boolean)
    this.box.replaceChildren()
    const show = (text, kind = "", tag = "span") => makeSentence(this.box, tag, {class: kind}, text)
    const fault = faults.find((one) => one.line === line)
    if (fault) {
      show(fault.message, "ckw-bad")
      return
    }
    const cut = this.editor.lines.cutLine(line)
    if (cut) show(`\`${cut}\` `)
    if (meaning) {
      show(meaning[0], "", "b")
      show(` ${meaning[1]}. `)
      const {cost} = this.editor.lines.all[line - 1]
      if (cost?.text && this.tellsCosts()) show(cost.title, "ckw-of-costs")
    } else show("Put the caret on a word to see what it means.", "ckw-soft")
  }

  /** Return what a word means in a line, as [name, meaning]. */
  meaning(word, line, registers) {
    const [name] = word.match(/^r\d+\b/) ?? []
    if (!name) return this.meanings.get(word)
    if (!registers.length) return
    const find = (names = []) => names.find((one) => one.split(".")[0] === name)
    const held = find(registers.find((row) => row.line === line)?.live)
    const set = registers.filter(({sets}) => find(sets)).map((row) => row.line)
    const where = set.length ? `set in ${linesInWords(set)}` : "no line sets it"
    return [name, `${held ? `${held} is` : "not"} in use here; ${where}`]
  }
}

/** "line 31" or "lines 3, 6". */
function linesInWords(lines) {
  const some = lines.slice(0, MAX_LINES).join(", ")
  return `line${lines.length > 1 ? "s" : ""} ${some}${lines.length > MAX_LINES ? " …" : ""}`
}
