// Rows of options: one stop of Tab, and arrow keys move the focus between them. Page Up and Page
// Down move by ten rows, Home to the first option, End to the last row, or in a single row to its
// end. Enter is a click.
import {listenKeys, make} from "../draw/shell.js"

const PAGE_ROWS = 10
const ALL = Number.POSITIVE_INFINITY

export class KeyList {
  /**
   * @param {HTMLElement} parent
   * @param {object} attributes of the box */
  constructor(parent, attributes) {
    this.rows = []
    this.box = make(parent, "div", attributes)
    this.box.addEventListener("focusin", ({target}) => this.stopAt(target))
    listenKeys(this.box, {
      ArrowDown: () => this.move(1, 0),
      ArrowUp: () => this.move(-1, 0),
      ArrowRight: () => this.move(0, 1),
      ArrowLeft: () => this.move(0, -1),
      PageDown: () => this.move(PAGE_ROWS, 0),
      PageUp: () => this.move(-PAGE_ROWS, 0),
      Home: () => this.move(-ALL, -ALL),
      End: () => this.move(ALL, this.rows.length > 1 ? 0 : ALL),
      Enter: () => this.option.click(),
    })
  }

  /** Replace what the box holds. `first` is the option that Tab reaches; it gets the focus if an
   * option had it.
   * @param {Node} content */
  show(content, rows, first = rows[0]?.[0]) {
    const focused = this.box.matches(":focus-within")
    this.box.replaceChildren(content)
    this.rows = rows
    this.stopAt(first)
    if (focused) first?.focus({preventScroll: true})
  }

  /** Let Tab reach an option, and no other. */
  stopAt(option) {
    this.option?.setAttribute("tabindex", "-1")
    this.option = option
    option?.setAttribute("tabindex", "0")
  }

  /** Move the focus, as far as there are rows and columns. */
  move(down, right) {
    const row = this.rows.findIndex((options) => options.includes(this.option))
    const options = this.rows[within(row + down, this.rows)]
    this.stopAt(options[within(this.rows[row].indexOf(this.option) + right, options)])
    this.option.focus()
  }
}

function within(place, list) {
  return Math.max(0, Math.min(place, list.length - 1))
}
