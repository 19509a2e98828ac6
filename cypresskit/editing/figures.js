// Figures about a kernel: its limits, its statistics, the most expensive line, and the terms of an
// element of C.
import {make} from "../draw/shell.js"

const UNITS = ["ALU", "texture", "LDS", "L2", "DRAM", "DRAM rows"]
const WORKING = {
  text: "reading the source",
  code: "compiling",
  verdict: "checking C",
  clocks: "timing",
  prices: "finding what each line costs",
  replay: "tracing an incorrect element",
}
// The rows of the statistics, and what they mean.
export const MEANINGS = {
  "bundles per iteration":
    "bundles in one iteration of the main loop; each holds up to five operations",
  registers: "registers per work-item; with fewer, an engine holds more wavefronts",
  wavefronts: "wavefronts that an engine holds; while some wait, others compute",
  "fetches per iteration": "fetches from textures in one iteration of the main loop",
  "full bundles": "share of the loop's bundles in which all five slots are filled",
  "LDS per iteration": "accesses to the local data share in one iteration of the main loop",
  nominal: "the speed if only the loop's bundles took time",
}
// The rows whose changes are shown, and their fields.
const FIELDS = {
  "bundles per iteration": "bundles_per_iteration",
  registers: "gprs",
  wavefronts: "wavefronts",
  "fetches per iteration": "fetches",
  "LDS per iteration": "lds_operations",
}
const NO_SPEED = "Speed and costs are shown once C is correct."

export class Figures {
  /**
   * @param {{parts: string[], goTo: (line: number, column?: number) => void,
   *   light: (lines: Set<number>) => void}} owner
   * @param {Record<"terms" | "limits" | "card" | "costs" | "working", HTMLElement>} places */
  constructor(owner, {terms, limits, card, costs, working}) {
    this.owner = owner
    const measured = owner.parts.includes("clocks")
    this.terms = make(terms, "section", {class: "ckw-terms ckw-of-terms", hidden: ""})
    this.units = make(limits, "section", {class: "ckw-units ckw-of-clocks"})
    this.units.hidden = !measured
    this.cardBox = make(card, "section", {class: "ckw-card ckw-of-code"})
    this.dear = make(costs, "section", {class: "ckw-dear ckw-of-prices", hidden: ""})
    this.working = make(working, "p", {class: "ckw-working"})
  }

  works(part) {
    this.working.textContent = WORKING[part] ? `${WORKING[part]} …` : ""
  }

  /** Show the statistics, and their change since the last correct kernel. */
  card(card) {
    const before = this.correctCard ?? card
    this.lastCard = card
    this.cardBox.replaceChildren()
    for (const [name, field] of Object.entries(FIELDS))
      if (card[field]) this.row(name, card[field], card[field] - before[field])
    this.row("full bundles", `${Math.round(card.slots5_pct)} %`)
    if (this.owner.parts.includes("clocks")) return
    const speed = Math.round(card.nominal_gflops)
    this.row("nominal", speed ? `${speed} Gflop/s` : (card.no_speed ?? ""))
  }

  row(name, value, change = 0) {
    const line = make(this.cardBox, "p", {title: MEANINGS[name]})
    make(line, "span", {class: "ckw-name"}, name)
    make(line, "b", {}, String(value))
    const sign = change > 0 ? "+" : "−"
    make(line, "span", {class: "ckw-change"}, change ? `${sign}${Math.abs(change)}` : "")
  }

  /** Compare the next texts with this one: it is correct. */
  correct() {
    this.correctCard = this.lastCard
  }

  /** Show how busy each unit is, for a correct kernel. The unit that limits it has the full color. */
  clocks(answer, right) {
    this.works("")
    this.units.replaceChildren()
    if (!right && !answer.problem) {
      make(this.units, "p", {class: "ckw-soft"}, NO_SPEED)
      return
    }
    if (answer.problem) {
      make(this.units, "p", {class: "ckw-soft"}, answer.problem)
      return
    }
    const head = make(this.units, "h3", {}, `Limited by ${answer.bound}`)
    head.title = "What keeps the kernel from finishing sooner; below, how busy each unit is."
    for (const unit of UNITS) {
      if (unit === "DRAM rows" && !answer.bound.startsWith(unit)) continue
      const share = answer.busy[unit] ?? 0
      const line = make(this.units, "p", {class: "ckw-unit"})
      line.dataset.unit = unit
      line.toggleAttribute("data-binds", answer.bound.startsWith(unit))
      make(line, "span", {class: "ckw-name"}, unit.replace("DRAM rows", "its rows"))
      const bar = make(line, "span", {class: "ckw-bar"})
      make(bar, "i").style.width = `${100 * Math.min(1, share)}%`
      make(line, "span", {class: "ckw-share"}, `${Math.round(100 * share)} %`)
    }
    const {percent, error, clocks, hits = {}, launch = 0} = answer
    const part = percent < 0.01 ? "below 0.01" : percent
    const notes = [`${part} % of peak, ${inClocks(clocks)} clocks`]
    if (error > 0.02) notes[0] += ` (± ${(100 * error).toFixed(0)} %)`
    if (launch > 0.05) notes.push(`launch overhead: ${(100 * launch).toFixed(0)} % of the time`)
    const rates = Object.entries(hits).map(
      ([cache, share]) => `${cache} ${Math.round(100 * share)} %`,
    )
    if (rates.length) notes.push(`hits: ${rates.join(", ")}`)
    for (const words of notes) make(this.units, "p", {class: "ckw-soft"}, words)
  }

  /** Show the terms of an element, the wrong ones in red. */
  replay({message, notes, terms, more, problem}) {
    this.works("")
    this.terms.hidden = false
    this.terms.replaceChildren()
    make(this.terms, "h3", {}, problem ?? message)
    for (const note of (notes ?? []).slice(1)) make(this.terms, "p", {class: "ckw-fault"}, note)
    const list = make(this.terms, "div", {class: "ckw-termlist"})
    for (const {text, right, note, line, lines = [line]} of terms ?? []) {
      const button = make(list, "button", {
        type: "button",
        class: right ? "ckw-term" : "ckw-term ckw-fault",
        title: note,
      })
      make(button, "small", {}, line ? `line ${line}: ` : "")
      make(button, "span", {}, text)
      button.addEventListener("click", () => this.owner.goTo(line || 1))
      for (const event of ["mouseenter", "focus"])
        button.addEventListener(event, () => this.owner.light(new Set(lines)))
    }
    if (more) make(list, "span", {class: "ckw-soft"}, `and ${more} more`)
  }

  /** Show the most expensive line, with a button to it. */
  prices({message, dearest, why = ""}) {
    this.works("")
    this.dear.hidden = !message
    this.dear.replaceChildren()
    if (!dearest) {
      this.dear.textContent = message ?? ""
      return
    }
    const button = make(this.dear, "button", {type: "button"}, message)
    button.title =
      "How much sooner the kernel would finish if the line took no time. Go to the line."
    button.addEventListener("click", () => this.owner.goTo(dearest))
    if (why) make(this.dear, "p", {class: "ckw-soft"}, why)
  }
}

/** Return clocks in three digits: the model is no more precise. */
function inClocks(clocks) {
  const digits = {maximumSignificantDigits: 3}
  return clocks < 1e6
    ? clocks.toLocaleString("en", digits)
    : `${(clocks / 1e6).toLocaleString("en", digits)} million`
}
