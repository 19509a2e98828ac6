// The panels below the code, each opened by a button. A step opens those that it is about.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"

// Name, label, and what is shown: those of each kernel, all of which are open without a step; the
// step's; and what words mean.
const OF_KERNEL = [
  ["costs", "Costs", "What each line costs"],
  ["limits", "Limits", "What limits the kernel, and what could help"],
  ["bundles", "Bundles", "What the compiler made of each line"],
  ["registers", "Registers", "Registers, wavefronts, and the launch"],
  ["history", "History", "Your edits, and how fast they are"],
]
const OF_STEP = [["climb", "Climb", "Your saved steps in one picture"]]
const OF_WORDS = [
  ["il", "IL in a minute", "What the text of a kernel consists of"],
  ["legend", "Legend", "The marks, and the keys"],
]

export class Panels {
  /**
   * @param {HTMLElement} row where the buttons are
   * @param {HTMLElement} below where the panels are
   * @param {{open_panels: string[]} | null} step the panels that it is about are open */
  constructor(row, below, step) {
    this.below = below
    this.boxes = {}
    this.buttons = {}
    this.list = new KeyList(row, {class: "ckw-buttons", role: "toolbar", "aria-label": "Show"})
    this.list.rows = [[]]
    for (const panel of [...OF_KERNEL, ...(step ? OF_STEP : []), ...OF_WORDS]) this.add(...panel)
    for (const name of step?.open_panels ?? OF_KERNEL.map(([name]) => name)) this.show(name)
    this.list.stopAt(this.list.rows[0][0])
  }

  /** Add a closed panel and its button. */
  add(name, label, title) {
    const attributes = {class: `ckw-panel ckw-panel-${name}`, "aria-label": label, hidden: ""}
    const box = make(this.below, "section", attributes)
    const onclick = () => this.show(name, box.hidden, true)
    const button = make(this.list.box, "button", {title, onclick, tabindex: "-1"}, label)
    this.boxes[name] = box
    this.buttons[name] = button
    this.show(name, false)
    this.list.rows[0].push(button)
  }

  /** Open a panel, or close it. */
  show(name, isOpen = true, scrolls = false) {
    this.boxes[name].hidden = !isOpen
    this.buttons[name].setAttribute("aria-expanded", String(isOpen))
    if (scrolls) this.boxes[name].scrollIntoView({block: "nearest"})
  }

  /** Append a button that leads to what IL is, wherever the panel is. */
  offerIL(parent, attributes = {}) {
    const onclick = () => this.show("il", true, true)
    make(parent, "button", {...attributes, onclick}, "IL in a minute")
  }
}
