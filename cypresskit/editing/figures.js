// The column of figures: is C right, how fast, what binds, what the compiler made, what is dear.
import {make} from "../draw/shell.js"

const UNITS = ["ALU", "texture", "LDS", "L2", "DRAM"]
const WORKING = {
  verdict: "checking C",
  clocks: "timing",
  best: "looking for fewer bundles",
  prices: "pricing lines",
}

export class Figures {
  /**
   * @param {HTMLElement} parent
   * @param {{parts: string[], goTo: (line: number, column?: number) => void,
   *   ask: (question: object) => void, light: (lines: Set<number>) => void}} owner */
  constructor(parent, owner) {
    this.owner = owner
    const measured = owner.parts.includes("clocks")
    this.product = make(parent, "section", {class: "ckw-product", hidden: ""})
    this.units = make(parent, "section", {class: "ckw-units"})
    this.units.hidden = !measured
    this.cardBox = make(parent, "section", {class: "ckw-card"})
    this.dear = make(parent, "section", {class: "ckw-dear", hidden: ""})
    this.working = make(parent, "p", {class: "ckw-working"})
    this.rows = new Map()
  }

  works(part) {
    this.working.textContent = WORKING[part] ? `${WORKING[part]} …` : ""
  }

  /** A row of the card: its name, its value, and what the bound is. */
  row(name, value, rest = "", change = 0) {
    let row = this.rows.get(name)
    if (!row) {
      const line = make(this.cardBox, "p")
      make(line, "span", {class: "ckw-name"}, name)
      row = {value: make(line, "b"), rest: make(line, "span", {class: "ckw-soft"}), line}
      this.rows.set(name, row)
    }
    row.value.textContent = value
    const sign = change > 0 ? "+" : "−"
    row.rest.textContent = (change ? ` ${sign}${Math.abs(change)}` : "") + (rest && ` ${rest}`)
  }

  card(card) {
    const before = this.lastCard ?? card
    this.lastCard = card
    this.least = card.bundles_bound
    const change = (name) => card[name] - before[name]
    this.row(
      "bundles a turn",
      card.loop_bundles,
      `least ${card.bundles_bound}`,
      change("loop_bundles"),
    )
    this.row("registers", card.gprs, `least ${card.gprs_bound}`, change("gprs"))
    this.row("wavefronts", card.wavefronts, "an engine", change("wavefronts"))
    this.row("fetches a turn", card.fetches, "", change("fetches"))
    this.row("full bundles", `${Math.round(card.slots5_pct)} %`)
    if (card.lds_operations) this.row("LDS a turn", card.lds_operations, "")
    if (!this.owner.parts.includes("clocks"))
      this.row(
        "nominal",
        Math.round(card.nominal_gflops),
        "Gflop/s if nothing but bundles took time",
      )
    this.row("longest", card.bound_by, "of a turn")
  }

  best({bundles, gprs, wavefronts}) {
    this.works("")
    this.row("bundles a turn", this.lastCard.loop_bundles, `best ${bundles}, least ${this.least}`)
    this.rows.get("bundles a turn").line.title =
      `The best order found: ${bundles} bundles, ${gprs} registers, ${wavefronts} wavefronts`
  }

  /** How busy each unit is: a bar each, that of what binds in full colour. */
  clocks(answer) {
    this.works("")
    this.units.replaceChildren()
    if (answer.problem) {
      make(this.units, "p", {class: "ckw-soft"}, answer.problem)
      return
    }
    make(this.units, "h3", {}, `Bound by ${answer.bound}`)
    for (const unit of UNITS) {
      const share = answer.busy[unit] ?? 0
      const line = make(this.units, "p", {class: "ckw-unit"})
      line.toggleAttribute("data-binds", answer.bound.startsWith(unit))
      make(line, "span", {class: "ckw-name"}, unit)
      const bar = make(line, "span", {class: "ckw-bar"})
      make(bar, "i").style.width = `${100 * Math.min(1, share)}%`
      make(line, "span", {class: "ckw-share"}, `${Math.round(100 * share)} %`)
    }
    const {percent, error, clocks} = answer
    make(
      this.units,
      "p",
      {class: "ckw-soft"},
      `${percent.toFixed(0)} % of peak, ${Math.round(clocks).toLocaleString("en")} clocks` +
        (error > 0.02 ? `, ± ${(100 * error).toFixed(0)} %` : ""),
    )
  }

  verdict() {
    this.works("")
  }

  replay() {}

  prices({message}) {
    this.works("")
    this.dear.hidden = !message
    this.dear.textContent = message ?? ""
  }
}
