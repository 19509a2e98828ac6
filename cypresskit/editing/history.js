// The history of edits: a dot for each, higher if it is faster. Hovering shows what it changed, and a
// click brings its text back.
import {make} from "../draw/shell.js"
import {inWhole} from "./figures.js"
import {KeyList} from "./key_list.js"

const HIGH = 68
const HINT = "Hover over an edit to see its change. Click to bring its text back."
const STEP = 16
const NONE = "None yet."

/** @typedef {{number: number, gflops: number, right: boolean | null, bundles: number,
 *   registers: number, wavefronts: number, bound: string, n: number, note: string,
 *   change?: string}} Entry `right` is null for a text that was never checked */

export class History {
  /**
   * @param {HTMLElement} parent
   * @param {(entry: number) => void} recall brings a text back */
  constructor(parent, recall) {
    this.recall = recall
    /** @type {Map<any, Entry>} */
    this.entries = new Map() // by their dots
    const head = make(parent, "div", {class: "ckw-panelhead"})
    make(head, "h3", {}, "Your edits")
    this.words = make(head, "span", {class: "ckw-soft"}, HINT)
    const attributes = {
      class: "ckw-dots",
      role: "listbox",
      "aria-label": "Your edits. Arrow keys move, Enter brings a text back.",
      onmouseleave: () => this.tell(this.list.option),
    }
    const used = (dot) => this.use(dot)
    this.list = new KeyList(parent, attributes, {chosen: (dot) => this.choose(dot), used})
  }

  /** @param {Entry[]} entries */
  show(entries) {
    const {box, option} = this.list
    const at = [...this.entries.keys()].indexOf(option)
    const grown = entries.length !== this.entries.size
    const good = entries.filter(({right}) => right)
    const fastest = Math.max(1, ...(good.length ? good : entries).map(({gflops}) => gflops))
    const best = good.find(({gflops}) => gflops === Math.max(...good.map((one) => one.gflops)))
    const place = (entry) => {
      const share = entry.right === false ? 0 : Math.min(1, entry.gflops / fastest)
      return [STEP * (entries.indexOf(entry) + 1), HIGH - 10 - share * (HIGH - 22)]
    }
    box.replaceChildren()
    const width = Math.max(STEP * (entries.length + 1), 60)
    const svg = make(box, "svg", {width, height: HIGH, role: "presentation"})
    make(svg, "polyline", {class: "ckw-way", points: good.map(place).join(" ")})
    const dots = entries.map((entry) => this.dot(svg, entry, entry === best, place(entry)))
    this.entries = new Map(dots.map((dot, n) => [dot, entries[n]]))
    this.list.show(dots.length ? [dots] : [], dots.at(-1))
    this.list.mark(dots[at])
    this.choose(dots[at])
    if (grown) box.scrollLeft = box.scrollWidth
  }

  dot(svg, entry, best, at) {
    const kind = best ? "best" : judgement(entry)
    const words = sentence(entry)
    const dot = make(svg, "g", {
      class: `ckw-dot ckw-${kind}`,
      role: "option",
      "aria-label": words,
      transform: `translate(${at})`,
      onmouseenter: () => this.tell(dot),
      onclick: () => this.use(dot),
    })
    make(dot, "title", {}, words)
    make(dot, "circle", {r: 9, class: "ckw-hit"})
    if (kind === "wrong") make(dot, "path", {d: "M-4-4 4 4M4-4-4 4"})
    else make(dot, "circle", {r: best ? 5.5 : 4.5})
    return dot
  }

  /** Describe a dot above the picture. */
  tell(dot) {
    const none = this.entries.size ? HINT : NONE
    this.words.textContent = dot ? sentence(this.entries.get(dot)) : none
    this.words.title = this.words.textContent
  }

  choose(dot) {
    for (const each of this.entries.keys()) each.setAttribute("aria-selected", String(each === dot))
    this.tell(dot)
  }

  use(dot) {
    this.list.mark(dot)
    this.choose(dot)
    this.recall(this.entries.get(dot).number)
  }
}

/** Describe an edit: what it changed, and what was found about it. */
function sentence(entry) {
  const {gflops, bundles, registers, wavefronts, bound, n, note, change} = entry
  const where = n ? ` at N = ${inWhole(n)}` : ""
  const speed = gflops ? `${inWhole(gflops)} Gflop/s${where}, limited by ${bound}` : "not timed"
  const verdict = {right: speed, wrong: "C is incorrect", unjudged: "not checked"}
  const code = bundles && `${bundles} bundles, ${registers} registers, ${wavefronts} wavefronts`
  const origin = [note, change].filter(Boolean).join(", ")
  return [origin, verdict[judgement(entry)], code].filter(Boolean).join("; ")
}

/** "right", "wrong" or "unjudged". */
function judgement({right}) {
  if (right === null) return "unjudged"
  return right ? "right" : "wrong"
}
