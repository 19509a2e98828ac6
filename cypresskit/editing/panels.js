// The panels below the code, each opened by a button. A step opens those that it is about. The host's
// attribute `data-open` lists the open ones.
import {make} from "../draw/shell.js"

export class Panels {
  /**
   * @param {HTMLElement} host
   * @param {HTMLElement} row where the buttons are
   * @param {HTMLElement} below where the panels are */
  constructor(host, row, below) {
    this.host = host
    this.row = row
    this.below = below
    this.all = new Map()
    host.dataset.open = ""
  }

  /** Add a closed panel and its button. Returns the panel. */
  add(name, label, title) {
    const attributes = {class: `ckw-panel ckw-panel-${name}`, "aria-label": label, hidden: ""}
    const box = make(this.below, "section", attributes)
    const onclick = () => this.open(name, box.hidden)
    const button = make(this.row, "button", {"aria-expanded": "false", title, onclick}, label)
    this.all.set(name, {box, button})
    return box
  }

  open(name, on = true) {
    const {box, button} = this.all.get(name)
    box.hidden = !on
    button.setAttribute("aria-expanded", String(on))
    const open = [...this.all].filter(([, one]) => !one.box.hidden)
    this.host.dataset.open = open.map(([name]) => name).join(" ")
  }
}
