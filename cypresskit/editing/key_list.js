// Rows of options, one of which is chosen by arrow keys. Page Up and Page Down move by ten rows, Home to
// the first option, End to the last row, or in a single row to its end. Enter uses the option.
import {make} from "../draw/shell.js"

const PAGE_ROWS = 10

/** The box keeps the focus; `aria-activedescendant` names the chosen option. */
export class KeyList {
  /**
   * @param {HTMLElement} parent
   * @param {object} attributes of the box
   * @param {{chosen: (option: HTMLElement) => void, used: (option: HTMLElement) => void}} owner */
  constructor(parent, attributes, owner) {
    this.owner = owner
    this.rows = []
    this.id = `ckw-chosen-${Math.random().toString(36).slice(2)}`
    const onfocus = () => {
      if (this.box.matches(":focus-visible") && !this.option) this.choose(this.first)
    }
    const onkeydown = (event) => this.press(event)
    this.box = make(parent, "div", {...attributes, tabindex: "0", onfocus, onkeydown})
  }

  /** Show other options, row by row. `first` is the one that is chosen at first. */
  show(rows, first = rows[0]?.[0]) {
    this.rows = rows
    this.first = first
    this.mark(undefined)
  }

  /** Mark an option as chosen. */
  mark(option) {
    this.option?.removeAttribute("id")
    this.option = option
    this.box.removeAttribute("aria-activedescendant")
    if (!option) return
    option.id = this.id
    this.box.setAttribute("aria-activedescendant", this.id)
  }

  choose(option) {
    if (!option) return
    this.mark(option)
    option.scrollIntoView({block: "nearest", inline: "nearest"})
    this.owner.chosen(option)
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.rows.length) return
    const option = this.option ?? this.first
    const row = this.rows.findIndex((options) => options.includes(option))
    const column = this.rows[row].indexOf(option)
    const last = this.rows.length - 1
    const places = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + PAGE_ROWS, column],
      PageUp: [row - PAGE_ROWS, column],
      Home: [0, 0],
      End: [last, last ? column : this.rows[last].length - 1],
    }
    const place = places[event.key]
    if (place) {
      const options = this.rows[Math.max(0, Math.min(place[0], last))]
      this.choose(options[Math.max(0, Math.min(place[1], options.length - 1))])
    } else if (event.key === "Enter") this.owner.used(option)
    else return
    event.preventDefault()
    event.stopPropagation() // from the notebook around it
  }
}
