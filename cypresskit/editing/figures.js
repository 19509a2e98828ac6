// Figures about a kernel: its limits, its statistics, and the most expensive line.
import {make} from "../draw/shell.js"
import {percent} from "./numbers.js"

/** What is said while a part is being made; of others, that the kernel is being checked. */
const WORKING = {
  clocks: "finding the speed, and what limits it …",
  costs: "finding what each line costs …",
}
const NO_SPEED = "Speed and costs are shown once C is correct."
const COST =
  " A cost is the time saved if that line alone took none: the others still keep the units busy."

export class Figures {
  /**
   * @param {{statistics: string[][], goTo: (line: number, column?: number) => void}} owner
   * @param {Record<"limits" | "card" | "costs" | "working", HTMLElement>} places */
  constructor(owner, {limits, card, costs, working}) {
    this.owner = owner
    this.units = make(limits, "section", {class: "ckw-units ckw-of-clocks"})
    this.cardBox = make(card, "section", {class: "ckw-card ckw-of-code"})
    this.costliest = make(costs, "section", {class: "ckw-costliest ckw-of-costs", hidden: ""})
    this.working = make(working, "p", {class: "ckw-working"})
    /** @type {Record<string, any> | undefined} */
    this.correctCard = undefined // the statistics of the last correct kernel
  }

  works(part) {
    this.working.textContent = part && (WORKING[part] ?? "checking …")
  }

  /** The kernel with these statistics is correct. */
  isCorrect(card) {
    this.correctCard = card
  }

  /** Show the statistics, and their change since the last correct kernel. */
  card(card) {
    const before = this.correctCard ?? card
    this.cardBox.replaceChildren()
    const values = {...card, slots5_pct: percent(card.slots5_pct / 100)}
    for (const [name, field, meaning] of this.owner.statistics) {
      const value = values[field]
      if (!value) continue
      const line = make(this.cardBox, "p", {title: meaning})
      make(line, "span", {class: "ckw-name"}, name)
      make(line, "b", {}, value)
      const change = value - before[field] || 0 // none of a text
      const text = change && `${change > 0 ? "+" : "−"}${Math.abs(change)}`
      make(line, "span", {class: "ckw-change"}, text || "")
    }
  }

  /** Show how busy each unit is, for a correct kernel. The unit that limits it, if one does, has the
   * full color. */
  clocks({problem, bound, limit, busy, help, notes}, isCorrect) {
    this.units.replaceChildren()
    const note = (text) => make(this.units, "p", {class: "ckw-soft"}, text)
    if (problem || !isCorrect) {
      note(problem || NO_SPEED)
      return
    }
    const title = "What keeps the kernel from finishing sooner; below, how busy each unit is."
    make(this.units, "h3", {title}, `Limited by ${bound}`)
    for (const [unit, share] of Object.entries(busy)) {
      const binds = unit === limit
      if (unit === "DRAM rows" && !binds) continue
      const line = make(this.units, "p", {class: "ckw-unit", "data-unit": unit})
      line.toggleAttribute("data-binds", binds)
      make(line, "span", {class: "ckw-name"}, unit.replace("DRAM rows", "its rows"))
      const bar = make(line, "span", {class: "ckw-bar"})
      make(bar, "i", {style: `width: ${100 * Math.min(1, share)}%`})
      make(line, "span", {class: "ckw-share"}, percent(share))
    }
    for (const text of [help, ...notes]) note(text)
  }

  /** Show the most expensive line, with a button to it. */
  costs({message = "", costliest = []}) {
    this.costliest.hidden = !message
    this.costliest.replaceChildren()
    const onclick = () => this.owner.goTo(costliest[0])
    if (costliest.length)
      make(this.costliest, "button", {title: "Go to the line", onclick}, message)
    else this.costliest.append(message)
    make(this.costliest, "span", {class: "ckw-soft"}, COST)
  }
}
