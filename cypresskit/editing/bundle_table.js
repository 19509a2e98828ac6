// The bundles of a kernel: a row for each bundle, fetch and store, and a cell for each slot, in the
// color of its line.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"
import {inWhole} from "./numbers.js"

const SLOTS = ["x", "y", "z", "w", "t"]
const SHORT = [
  [/^PRED_SET.*/, "PRED"],
  [/_IEEE|_DX10|^LDS_/g, ""],
  [/_U?INT/, (found) => found.slice(0, 2)],
  ["MULADD", "MAD"],
]
const MAX_ROWS = 400 // that are drawn

/** Shorten an operation's name; its cell cuts off what is still too long. */
function short(name) {
  return SHORT.reduce((text, [old, now]) => text.replace(old, now), name)
}

export class BundleTable {
  /**
   * @param {HTMLElement} parent
   * @param {boolean} hasLLVM whether it can compile what a reader writes
   * @param {number} colors how many there are
   * @param {{picked: (line: number) => void, goTo: (line: number) => void, compiled: () => void}}
   *   owner */
  constructor(parent, hasLLVM, colors, owner) {
    this.count = colors
    this.colors = new Map() // the number of a color for each line
    this.cells = new Map() // each cell's line; 0 of an empty slot
    this.lit = new Set()
    this.title = make(parent, "h3", {}, "Bundles")
    this.by = make(parent, "select", {"aria-label": "Compiler", onchange: owner.compiled})
    make(this.by, "option", {value: "code"}, "cypresskit")
    make(this.by, "option", {value: "llvm"}, "LLVM")
    this.by.hidden = !hasLLVM
    const slots = make(parent, "div", {class: "ckw-slots", "aria-hidden": "true"})
    for (const letter of ["", ...SLOTS]) make(slots, "span", {}, letter)
    const withLine = (act) => (event) => {
      const line = this.cells.get(event.target)
      if (line) act(line, event)
    }
    const goTo = withLine((line, event) => {
      event.preventDefault() // the editor gets the focus
      owner.goTo(line)
    })
    const attributes = {
      class: "ckw-bundles",
      role: "grid",
      "aria-label": "Bundles. Arrow keys move, Enter goes to the line.",
      // Before the list is redrawn. Keys and screen readers send a click alone.
      onmousedown: (event) => event.button || goTo(event),
      onclick: (event) => event.detail || goTo(event),
      onfocusin: withLine(owner.picked),
    }
    this.list = new KeyList(parent, attributes)
  }

  /** Show an answer's rows: those of the main loop, if there is one; or why it has none. */
  show({rows = [], refusal, card, gflops}) {
    const {box} = this.list
    const loop = rows.filter((row) => row.loop)
    const shown = loop.length ? loop : rows
    const lines = new Set(shown.flatMap(({operations}) => operations.map(([, , line]) => line)))
    this.colors = new Map([...lines].sort((a, b) => a - b).map((line, n) => [line, n % this.count]))
    const bundles = shown.filter(({kind}) => kind === "alu").length
    const speed = gflops ? `, ${inWhole(gflops)} Gflop/s` : ""
    const counts = this.by.value === "llvm" && card ? `, ${card.gprs} registers${speed}` : ""
    this.title.textContent =
      refusal?.message ?? `${bundles} bundles${loop.length ? " in the loop" : ""}${counts}`
    const {scrollTop} = box
    const table = new DocumentFragment()
    this.cells.clear()
    let number = 0
    const cells = shown.slice(0, MAX_ROWS).map((row, n) => {
      const line = make(table, "div", {role: "row", class: `ckw-bundle ckw-${row.kind}`})
      line.classList.toggle("ckw-first", row.clause !== shown[n - 1]?.clause)
      const label = {alu: number + 1, flow: ""}[row.kind] ?? row.kind
      make(line, "span", {role: "rowheader", class: "ckw-label"}, label)
      if (row.kind === "alu") {
        number++
        const slots = SLOTS.map((_, slot) => row.operations.find(([at]) => at === slot))
        return slots.map((operation, slot) => this.cell(line, operation, `${SLOTS[slot]}: `))
      }
      if (row.operations.length) return [this.cell(line, row.operations[0])]
      make(line, "span", {class: "ckw-jump"}, row.text)
      return []
    })
    const more = shown.length - MAX_ROWS
    if (more > 0) make(table, "p", {class: "ckw-soft"}, `… and ${inWhole(more)} more`)
    const filled = cells.filter(({length}) => length)
    this.list.show(table, filled)
    box.scrollTop = scrollTop
    this.light(this.lit)
  }

  cell(parent, operation, place = "") {
    const [, name, line, text] = operation ?? [0, "", 0, ""]
    const label = operation ? `${name}, line ${line}` : "empty"
    const cell = make(
      parent,
      "span",
      {
        role: "gridcell",
        class: operation ? "ckw-slot" : "ckw-slot ckw-empty",
        title: operation ? `${place}${text.replace(/\s+/g, " ")}\nline ${line}` : "",
        style: operation ? `--line: var(--ckw-${this.colors.get(line)})` : "",
        "aria-label": `${place}${label}`,
      },
      short(name),
    )
    this.cells.set(cell, line)
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
