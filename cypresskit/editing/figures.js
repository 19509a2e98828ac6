// The column of figures: what binds, how busy each unit is, what the compiler made, what is dear; and
// below the text, the terms of a wrong element.
import {make} from "../draw/shell.js"

const UNITS = ["ALU", "texture", "LDS", "L2", "DRAM", "DRAM rows"]
const WORKING = {
  text: "reading the text",
  code: "compiling",
  verdict: "checking C",
  clocks: "timing",
  prices: "pricing lines",
  replay: "replaying a wrong element",
}
// The rows of the card, and what they mean.
export const MEANINGS = {
  "bundles a turn": "Bundles in a turn of the main loop: each holds up to five operations.",
  registers: "Registers that a work-item takes: the fewer, the more wavefronts an engine holds.",
  wavefronts: "Wavefronts that an engine holds at once: while some wait, others compute.",
  "fetches a turn": "Fetches from textures in a turn of the main loop.",
  "full bundles": "The share of the loop's bundles in which all five slots are taken.",
  "LDS a turn": "Accesses to the local data share in a turn of the main loop.",
  nominal: "The speed if nothing but the loop's bundles took time.",
}

export class Figures {
  /**
   * @param {HTMLElement} parent
   * @param {{parts: string[], goTo: (line: number, column?: number) => void,
   *   light: (lines: Set<number>) => void, below: HTMLElement, card: HTMLElement}} owner */
  constructor(parent, owner) {
    this.owner = owner
    const measured = owner.parts.includes("clocks")
    this.terms = make(owner.below, "section", {class: "ckw-terms ckw-of-terms", hidden: ""})
    this.units = make(parent, "section", {class: "ckw-units ckw-of-clocks"})
    this.units.hidden = !measured
    this.cardBox = make(owner.card, "section", {class: "ckw-card"})
    this.dear = make(parent, "section", {class: "ckw-dear ckw-of-prices", hidden: ""})
    this.working = make(parent, "p", {class: "ckw-working"})
    this.rows = new Map()
  }

  works(part) {
    this.working.textContent = WORKING[part] ? `${WORKING[part]} …` : ""
  }

  /** A row of the card: its name, its value, how much that changed, and what belongs to it. */
  row(name, value, rest = "", change = 0) {
    let row = this.rows.get(name)
    if (!row) {
      const line = make(this.cardBox, "p", {title: MEANINGS[name] ?? ""})
      make(line, "span", {class: "ckw-name"}, name)
      row = {
        value: make(line, "b"),
        change: make(line, "span", {class: "ckw-change"}),
        rest: make(line, "span", {class: "ckw-soft"}),
      }
      this.rows.set(name, row)
    }
    row.value.textContent = value
    row.change.textContent = change ? `${change > 0 ? "+" : "−"}${Math.abs(change)}` : ""
    row.rest.textContent = rest
    return row
  }

  card(card) {
    const before = this.lastCard ?? card
    this.lastCard = card
    const change = (name) => card[name] - before[name]
    this.row("bundles a turn", card.loop_bundles, "", change("loop_bundles"))
    this.row("registers", card.gprs, "", change("gprs"))
    this.row("wavefronts", card.wavefronts, "", change("wavefronts"))
    this.row("fetches a turn", card.fetches, "", change("fetches"))
    this.row("full bundles", `${Math.round(card.slots5_pct)} %`)
    if (card.lds_operations) this.row("LDS a turn", card.lds_operations)
    if (!this.owner.parts.includes("clocks"))
      this.row("nominal", Math.round(card.nominal_gflops) || "", card.no_speed ?? "Gflop/s")
  }

  /** How busy each unit is: a bar each, that of what binds in full colour. */
  clocks(answer) {
    this.works("")
    this.units.replaceChildren()
    if (answer.problem) {
      make(this.units, "p", {class: "ckw-soft"}, answer.problem)
      return
    }
    const head = make(this.units, "h3", {}, `Bound by ${answer.bound}`)
    head.title = "What keeps the launch from ending sooner; below, how busy each unit is."
    for (const unit of UNITS) {
      if (unit === "DRAM rows" && !answer.bound.startsWith(unit)) continue
      const share = answer.busy[unit] ?? 0
      const line = make(this.units, "p", {class: "ckw-unit"})
      line.toggleAttribute("data-binds", answer.bound.startsWith(unit))
      make(line, "span", {class: "ckw-name"}, unit.replace("DRAM rows", "its rows"))
      const bar = make(line, "span", {class: "ckw-bar"})
      make(bar, "i").style.width = `${100 * Math.min(1, share)}%`
      make(line, "span", {class: "ckw-share"}, `${Math.round(100 * share)} %`)
    }
    const {percent, error, clocks, hits = {}, launch = 0} = answer
    const part = percent < 0.01 ? "below 0.01" : percent
    const notes = [`${part} % of peak, ${Math.round(clocks).toLocaleString("en")} clocks`]
    if (error > 0.02) notes[0] += ` ± ${(100 * error).toFixed(0)} %`
    if (launch > 0.05) notes.push(`the launch itself: ${(100 * launch).toFixed(0)} % of the time`)
    const rates = Object.entries(hits).map(
      ([cache, share]) => `${cache} ${Math.round(100 * share)} %`,
    )
    if (rates.length) notes.push(`hits: ${rates.join(", ")}`)
    for (const words of notes) make(this.units, "p", {class: "ckw-soft"}, words)
  }

  /** The terms that went into an element, those that don't belong there in red. */
  replay({message, notes, terms, more, problem}) {
    this.works("")
    this.terms.hidden = false
    this.terms.replaceChildren()
    make(this.terms, "h3", {}, problem ?? `In the verdict's product, ${message}`)
    for (const note of (notes ?? []).slice(1)) make(this.terms, "p", {class: "ckw-fault"}, note)
    const list = make(this.terms, "div", {class: "ckw-termlist"})
    for (const {text, right, note, line, lines = [line]} of terms ?? []) {
      const button = make(list, "button", {
        type: "button",
        class: right ? "ckw-term" : "ckw-term ckw-fault",
        title: note,
      })
      make(button, "small", {}, line ? `${line} ` : "")
      make(button, "span", {}, text)
      button.addEventListener("click", () => this.owner.goTo(line || 1))
      for (const event of ["mouseenter", "focus"])
        button.addEventListener(event, () => this.owner.light(new Set(lines)))
    }
    if (more) make(list, "span", {class: "ckw-soft"}, `and ${more} more`)
  }

  /** The dearest line, a button to it. */
  prices({message, dearest}) {
    this.works("")
    this.dear.hidden = !message
    this.dear.replaceChildren()
    if (!dearest) {
      this.dear.textContent = message ?? ""
      return
    }
    const button = make(this.dear, "button", {type: "button"}, message)
    button.title = "What the launch would save if the line took no time. Click: go to the line."
    button.addEventListener("click", () => this.owner.goTo(dearest))
  }
}
