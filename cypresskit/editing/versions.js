// Two versions of the kernel side by side: their figures, and the lines in which they differ. The
// reader chooses both.
import {make} from "../draw/shell.js"

const SIDES = ["left", "right"]

export class Versions {
  /**
   * @param {HTMLElement} parent
   * @param {(entries: number[]) => void} ask asks for the comparison of two edits */
  constructor(parent, ask) {
    this.ask = () => {
      if (!this.box.open) return
      this.show({figures: [], hunks: []})
      this.said.textContent = "Comparing …" // Python may be busy
      ask(this.chosen.map(({value}) => Number(value)))
    }
    this.box = make(parent, "details", {class: "ckw-versions", ontoggle: this.ask})
    make(this.box, "summary", {}, "Compare two versions")
    const figures = make(this.box, "table")
    const head = make(make(figures, "thead"), "tr")
    make(head, "th", {scope: "col"}, "Version")
    this.chosen = SIDES.map((side) => {
      const attributes = {"aria-label": `Version on the ${side}`, onchange: this.ask}
      return make(make(head, "th", {scope: "col"}), "select", attributes)
    })
    this.values = make(figures, "tbody")
    this.lines = make(this.box, "table", {class: "ckw-compared"})
    this.said = make(this.box, "p", {class: "ckw-soft", role: "status"})
  }

  /** Offer all edits, each with its judgement and its change. Until the comparison is opened, the
   * last two are chosen. */
  offer(entries) {
    this.box.hidden = entries.length < 2
    this.chosen.forEach((select, at) => {
      const before = select.value
      select.replaceChildren()
      for (const {number, words} of entries)
        make(select, "option", {value: number}, `${number}: ${words.split("; ", 2).join("; ")}`)
      const known = this.box.open && entries.some(({number}) => String(number) === before)
      select.value = known ? before : entries.at(at - 2)?.number
    })
  }

  /** Show a comparison. */
  show({figures, hunks}) {
    this.values.replaceChildren()
    for (const [name, ...values] of figures) {
      const row = make(this.values, "tr")
      row.toggleAttribute("data-differs", values[0] !== values[1])
      make(row, "th", {scope: "row"}, name)
      for (const value of values) make(row, "td", {}, value)
    }
    this.lines.replaceChildren()
    for (const hunk of hunks) {
      const body = make(this.lines, "tbody")
      for (const row of hunk) {
        const line = make(body, "tr")
        row.sides.forEach((side, at) => {
          const [number, cost, text] = side ?? ["", "", ""]
          make(line, "td", {class: "ckw-count"}, number)
          make(line, "td", {class: "ckw-count", title: cost && `costs ${cost} %`}, cost)
          const cell = make(line, "td")
          const tag = row.changed && number ? ["del", "ins"][at] : "span"
          make(cell, tag, {}, text || " ")
        })
      }
    }
    const count = hunks.flat().filter(({changed}) => changed).length
    const marks =
      "Changed lines have − or + in front; the number beside a line is its cost in percent."
    this.said.textContent = count
      ? `Rows that differ: ${count}. ${marks}`
      : "The texts are the same."
  }
}
