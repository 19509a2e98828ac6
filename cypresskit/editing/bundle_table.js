// The bundles of a kernel: a row for each bundle, fetch and store, and a cell for each slot, in the
// color of its line.
import {make} from "../draw/shell.js"
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
const NAMES = {fetch: "fetch", store: "store", flow: ""}

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
    this.owner = owner
    this.cells = new Map() // each cell's line; 0 of an empty slot
    this.whole = false
    const head = make(parent, "div", {class: "ckw-panelhead"})
    this.title = make(head, "h3", {}, "Bundles")
    this.more = make(head, "button", {type: "button", "aria-pressed": "false"}, "all")
    this.more.title = "Show the whole kernel, not only its main loop"
    this.more.addEventListener("click", () => {
      this.whole = !this.whole
      this.more.setAttribute("aria-pressed", String(this.whole))
      this.draw()
    })
    const slots = make(parent, "div", {class: "ckw-slots", "aria-hidden": "true"})
    for (const letter of ["", ...SLOTS]) make(slots, "span", {}, letter)
    this.box = make(parent, "div", {
      class: "ckw-bundles",
      role: "grid",
      "aria-label": "Bundles. Arrow keys move, Enter goes to the line.",
    })
    this.list = new KeyList(this.box, {
      chosen: (cell) => {
        const line = this.cells.get(cell)
        if (line) owner.picked(line)
      },
      used: (cell) => {
        const line = this.cells.get(cell)
        if (line) owner.goTo(line)
      },
    })
  }

  /** The number of a color for each line of the main loop.
   * @returns {Map<number, number>} */
  get colors() {
    const rows = this.rows ?? []
    const lines = rows.filter(({loop}) => loop).flatMap(({parts}) => parts.map((part) => part[2]))
    const all = lines.length ? lines : rows.flatMap(({parts}) => parts.map((part) => part[2]))
    const sorted = [...new Set(all)].sort((a, b) => a - b)
    return new Map(sorted.map((line, n) => [line, n]))
  }

  /** Show an answer's rows. */
  show({rows}) {
    this.rows = rows
    this.draw()
  }

  draw() {
    if (!this.rows) return
    const loops = this.rows.some(({loop}) => loop) && this.rows.some(({loop}) => !loop)
    this.more.hidden = !loops
    const shown = this.rows.filter(({loop}) => this.whole || !loops || loop)
    const bundles = shown.filter(({kind}) => kind === "alu").length
    const what = this.whole || !loops ? "bundles" : "bundles in the loop"
    this.title.textContent = `${bundles} ${what}`
    const {scrollTop} = this.box
    this.box.replaceChildren()
    this.cells = new Map()
    const rows = []
    const colors = this.colors
    let number = 0
    let clause = -1
    for (const row of shown.slice(0, MOST_ROWS)) {
      const line = make(this.box, "div", {role: "row", class: `ckw-bundle ckw-${row.kind}`})
      line.classList.toggle("ckw-new", row.new)
      line.classList.toggle("ckw-first", row.clause !== clause)
      clause = row.clause
      if (row.kind === "alu") number++
      const label = row.kind === "alu" ? String(number) : NAMES[row.kind]
      make(line, "span", {role: "rowheader", class: "ckw-label"}, label)
      const cells = []
      if (row.kind === "alu") {
        const slots = new Map(row.parts.map((part) => [part[0], part]))
        SLOTS.forEach((_, slot) => {
          cells.push(this.cell(line, slots.get(slot), colors))
        })
      } else if (row.parts.length) cells.push(this.cell(line, row.parts[0], colors))
      else make(line, "span", {class: "ckw-jump"}, row.text)
      if (cells.length) rows.push(cells)
    }
    const more = shown.length - MOST_ROWS
    if (more > 0)
      make(this.box, "p", {class: "ckw-soft"}, `… and ${more.toLocaleString("en")} more`)
    this.list.show(rows)
    this.box.scrollTop = scrollTop
    this.light(this.lit ?? new Set())
  }

  cell(parent, part, colors) {
    const cell = make(parent, "span", {role: "gridcell", class: "ckw-slot"})
    if (!part) {
      cell.classList.add("ckw-empty")
      cell.setAttribute("aria-label", "empty")
      this.cells.set(cell, 0)
      return cell
    }
    const [slot, name, line, text] = part
    const color = colors.get(line)
    if (color !== undefined) cell.style.setProperty("--line", `var(--ckw-${color % 8})`)
    cell.textContent = short(name)
    const place = parent.classList.contains("ckw-alu") ? `${SLOTS[slot]}: ` : ""
    cell.title = `${place}${text.replace(/\s+/g, " ")}\nline ${line}`
    cell.setAttribute("aria-label", `${place}${name}, line ${line}`)
    const pick = () => {
      this.list.choose(cell)
      this.owner.goTo(line)
    }
    // On mousedown, before the list is redrawn or gets the focus. Screen readers send a click alone.
    cell.addEventListener("mousedown", (event) => {
      if (event.button) return
      event.preventDefault()
      pick()
    })
    cell.addEventListener("click", ({detail}) => {
      if (!detail) pick()
    })
    this.cells.set(cell, line)
    return cell
  }

  /** Highlight the slots of lines, and scroll to the first. */
  light(lines, scroll = false) {
    this.lit = lines
    let first
    for (const [cell, line] of this.cells) {
      const lit = lines.has(line)
      cell.classList.toggle("ckw-lit", lit)
      if (lit) first ??= cell
    }
    if (!first || !scroll) return
    const top = first.offsetTop - this.box.offsetTop
    if (top < this.box.scrollTop || top > this.box.scrollTop + this.box.clientHeight - 20)
      this.box.scrollTop = top - this.box.clientHeight / 3
  }
}
