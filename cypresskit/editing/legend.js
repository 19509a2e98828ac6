// What is what on the workbench, and its keys: behind a button with a question mark.
import {make} from "../draw/shell.js"
import {MEANINGS} from "./figures.js"

const KEYS = [
  ["Ctrl+Z, Ctrl+Y", "undo and redo what you typed; the dots below have all earlier texts"],
]
const PURE = [
  ["live", "registers whose value is still needed at a line; the most, in bold, is what counts"],
  ["colours", "a line, and what became of it in the bundles, have the same"],
  ["a bundle", "a row: operations that slots x y z w t do at once; a dashed slot does nothing"],
  ["MAD, PRED", "multiply and add; who stays in the loop. Point at a slot: it says all"],
  ["orange edge", "a bundle that the text before this one didn't have"],
  ["grey", "still of the text before"],
  ["hollow mark", "a line of which no operation is left"],
]
const MEASURED = [
  [
    "price",
    "per cent of the launch saved if the line took no time; the bar: how long its unit works for it",
  ],
  ["orange element", "it is wrong: click it, and the terms of its sum come, the wrong ones in red"],
  ["busy", "the share of the time in which a unit works: ALU, texture, LDS, L2, DRAM"],
  [
    "dots",
    "your edits, as high as they are fast; a cross is wrong, hollow not judged, ringed the fastest",
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
      title: "What is what, and the keys",
      "aria-label": "What is what, and the keys",
      "aria-expanded": "false",
    })
    this.button.textContent = "?"
    this.box = make(over, "div", {
      class: "ckw-legend",
      role: "region",
      "aria-label": "What is what, and the keys",
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
