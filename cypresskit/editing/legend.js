// The legend and the keyboard shortcuts, opened by a button with a question mark.
import {make} from "../draw/shell.js"
import {MEANINGS} from "./figures.js"

const KEYS = [
  ["Tab, Shift+Tab", "indent or unindent; press Escape before Tab to leave the editor"],
  ["Ctrl+Z, Ctrl+Y", "undo and redo what you typed; the history has all earlier texts"],
]
const PURE = [
  ["live", "registers in use at a line; the row `registers` shows how many limit the wavefronts"],
  ["colors", "a line and its operations in the bundles have the same color"],
  ["bundle", "a row: operations that run at once in slots x y z w t; a dashed slot is empty"],
  ["MAD, PRED", "multiply-add; the test of the loop. Point at a slot to see the whole operation"],
  ["orange edge", "a bundle that is new in this text"],
  ["gray", "belongs to the previous text"],
  ["hollow mark", "a line that compiles to nothing"],
]
const MEASURED = [
  [
    "cost",
    "percent of the time that is saved if the line takes no time; it depends on what is left to wait for",
  ],
  ["orange element", "incorrect: click it to see its terms, the wrong ones in red"],
  ["busy", "share of the time in which a unit works: ALU, texture, LDS, L2, DRAM"],
  [
    "dots",
    "your edits, faster ones higher; a cross is incorrect, hollow is not checked, ringed is the fastest",
  ],
]

export class Legend {
  /** @param {HTMLElement} parent what the button stands in
   * @param {HTMLElement} over what it covers
   * @param {string[]} parts of an answer that can come */
  constructor(parent, over, parts) {
    this.button = make(parent, "button", {
      type: "button",
      class: "ckw-ask",
      title: "Legend and keyboard shortcuts",
      "aria-label": "Legend and keyboard shortcuts",
      "aria-expanded": "false",
    })
    this.button.textContent = "?"
    this.box = make(over, "div", {
      class: "ckw-legend",
      role: "region",
      "aria-label": "Legend and keyboard shortcuts",
      tabindex: "0",
      hidden: "",
    })
    const list = make(this.box, "dl")
    const measured = parts.includes("prices") ? MEASURED : []
    const card = Object.entries(MEANINGS)
    for (const [name, meaning] of [...PURE, ...measured, ...card, ...KEYS]) {
      const entry = make(list, "div")
      make(entry, "dt", {}, name)
      make(entry, "dd", {}, ` ${meaning}`)
    }
    this.button.addEventListener("click", () => this.show(this.box.hidden))
    for (const part of [this.button, this.box])
      part.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || this.box.hidden) return
        event.stopPropagation()
        this.show(false)
        this.button.focus()
      })
  }

  show(open) {
    this.box.hidden = !open
    this.button.setAttribute("aria-expanded", String(open))
  }
}
