// The panels below the code, each opened by a button. A step opens those that it is about.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"

export class Panels {
  /**
   * @param {HTMLElement} row where the buttons are
   * @param {HTMLElement} below where the panels are */
  constructor(row, below) {
    this.below = below
    this.all = new Map()
    this.list = new KeyList(row, {class: "ckw-buttons", role: "toolbar", "aria-label": "Show"})
    this.list.rows = [[]]
  }

  /** Add a closed panel and its button. Returns the panel. */
  add(name, label, title) {
    const attributes = {class: `ckw-panel ckw-panel-${name}`, "aria-label": label, hidden: ""}
    const box = make(this.below, "section", attributes)
    const onclick = () => this.open(name, box.hidden, true)
    const button = make(this.list.box, "button", {title, onclick, tabindex: "-1"}, label)
    this.all.set(name, {box, button})
    this.open(name, false)
    this.list.rows[0].push(button)
    this.list.stopAt(this.list.rows[0][0])
    return box
  }

  open(name, on = true, scrolls = false) {
    const {box, button} = this.all.get(name)
    box.hidden = !on
    button.setAttribute("aria-expanded", String(on))
    if (scrolls) box.scrollIntoView({block: "nearest"})
  }
}
