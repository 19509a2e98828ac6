// The bundles of a kernel: a row for each bundle, fetch and store, and a cell for each slot, in the
// color of its line.
import {make} from "../draw/shell.js"
import {inWhole} from "./figures.js"
import {KeyList} from "./key_list.js"

const SLOTS = ["x", "y", "z", "w", "t"]
const SHORT = [
  ["_IEEE", ""],
  ["_DX10", ""],
  ["_UINT", "_U"],
  ["_INT", "_I"],
  ["LDS_", ""],
  ["MULADD", "MAD"],
]
const MOST_ROWS = 400 // that are drawn

/** Shorten an operation's name to about six characters. */
function short(name) {
  if (name.startsWith("PRED_SET")) return "PRED"
  const made = SHORT.reduce((text, [old, now]) => text.replace(old, now), name)
  return made.length > 7 ? `${made.slice(0, 6)}…` : made
}

export class BundleTable {
  /**
   * @param {HTMLElement} parent
   * @param {{picked: (line: number) => void, goTo: (line: number) => void}} owner */
  constructor(parent, owner) {
    this.rows = [] // of an answer
    this.cells = new Map() // each cell's line; 0 of an empty slot
    this.lit = new Set()
    this.title = make(parent, "h3", {}, "Bundles")
    const slots = make(parent, "div", {class: "ckw-slots", "aria-hidden": "true"})
    for (const letter of ["", ...SLOTS]) make(slots, "span", {}, letter)
    const pick = (event) => {
      const line = this.cells.get(event.target)
      if (!line) return
      event.preventDefault()
      this.list.choose(event.target)
      owner.goTo(line)
    }
    const attributes = {
      class: "ckw-bundles",
      role: "grid",
      "aria-label": "Bundles. Arrow keys move, Enter goes to the line.",
      // Before the list is redrawn or gets the focus. Screen readers send a click alone.
      onmousedown: (event) => event.button || pick(event),
      onclick: (event) => event.detail || pick(event),
    }
    const withLine = (act) => (cell) => this.cells.get(cell) && act(this.cells.get(cell))
    const [chosen, used] = [owner.picked, owner.goTo].map(withLine)
    this.list = new KeyList(parent, attributes, {chosen, used})
  }

  /** The number of a color for each line.
   * @returns {Map<number, number>} */
  get colors() {
    const lines = this.rows.flatMap(({parts}) => parts.map((part) => part[2]))
    const sorted = [...new Set(lines)].sort((a, b) => a - b)
    return new Map(sorted.map((line, n) => [line, n]))
  }

  /** Show an answer's rows: those of the main loop, if there is one. */
  show({rows}) {
    const {box} = this.list
    const loop = rows.filter((row) => row.loop)
    this.rows = loop.length ? loop : rows
    const bundles = this.rows.filter(({kind}) => kind === "alu").length
    this.title.textContent = `${bundles} bundles${loop.length ? " in the loop" : ""}`
    const {scrollTop} = box
    box.replaceChildren()
    this.cells.clear()
    const {colors} = this
    let number = 0
    let clause = -1
    const cells = this.rows.slice(0, MOST_ROWS).map((row) => {
      const line = make(box, "div", {role: "row", class: `ckw-bundle ckw-${row.kind}`})
      line.classList.toggle("ckw-new", row.new)
      line.classList.toggle("ckw-first", row.clause !== clause)
      clause = row.clause
      const label = {alu: number + 1, flow: ""}[row.kind] ?? row.kind
      make(line, "span", {role: "rowheader", class: "ckw-label"}, label)
      if (row.kind === "alu") {
        number++
        const slots = SLOTS.map((_, slot) => row.parts.find((part) => part[0] === slot))
        return slots.map((part, slot) => this.cell(line, part, colors, `${SLOTS[slot]}: `))
      }
      if (row.parts.length) return [this.cell(line, row.parts[0], colors)]
      make(line, "span", {class: "ckw-jump"}, row.text)
      return []
    })
    const more = this.rows.length - MOST_ROWS
    if (more > 0) make(box, "p", {class: "ckw-soft"}, `… and ${inWhole(more)} more`)
    this.list.show(cells.filter(({length}) => length))
    box.scrollTop = scrollTop
    this.light(this.lit)
  }

  cell(parent, part, colors, place = "") {
    const cell = make(parent, "span", {role: "gridcell", class: "ckw-slot"})
    const [, name, line, text] = part ?? [0, "", 0, ""]
    this.cells.set(cell, line)
    if (!part) {
      cell.classList.add("ckw-empty")
      cell.setAttribute("aria-label", "empty")
      return cell
    }
    const color = colors.get(line)
    if (color !== undefined) cell.style.setProperty("--line", `var(--ckw-${color % 8})`)
    cell.textContent = short(name)
    cell.title = `${place}${text.replace(/\s+/g, " ")}\nline ${line}`
    cell.setAttribute("aria-label", `${place}${name}, line ${line}`)
    return cell
  }

  /** Highlight the slots of lines, and scroll to the first. */
  light(lines, scroll = false) {
    this.lit = lines
    for (const [cell, line] of this.cells) cell.classList.toggle("ckw-lit", lines.has(line))
    const {box} = this.list
    const first = box.querySelector(".ckw-lit")
    if (!first || !scroll) return
    const top = first.offsetTop - box.offsetTop
    if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 20)
      box.scrollTop = top - box.clientHeight / 3
  }
}
