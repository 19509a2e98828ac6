// The history of edits, the newest first: what each changed, how fast it is, and a bar of its speed. A
// click brings its text back.
import {make} from "../draw/shell.js"
import {inWhole} from "./figures.js"
import {KeyList} from "./key_list.js"

/** @typedef {{number: number, gflops: number, right: boolean | null, bundles: number,
 *   registers: number, wavefronts: number, bound: string, n: number, note: string,
 *   change?: string}} Entry `right` is null for a text that was never checked */

export class History {
  /**
   * @param {HTMLElement} parent
   * @param {(entry: number) => void} recall brings a text back */
  constructor(parent, recall) {
    this.recall = recall
    make(parent, "h3", {}, "Your edits")
    const label = "Your edits. Arrow keys move, Enter brings a text back."
    const attributes = {class: "ckw-edits", role: "listbox", "aria-label": label}
    const used = (option) => option.click()
    this.list = new KeyList(parent, attributes, {chosen: (option) => this.choose(option), used})
  }

  /** @param {Entry[]} entries */
  show(entries) {
    const {box} = this.list
    const at = this.chosen?.dataset.number
    box.replaceChildren()
    const speeds = entries.map(({right, gflops}) => (right ? gflops : 0))
    const fastest = Math.max(1, ...speeds)
    const options = entries.map((entry, n) => {
      const {number} = entry
      const best = speeds[n] === fastest ? "ckw-best" : ""
      return make(
        box,
        "p",
        {
          class: `ckw-edit ckw-${judgement(entry)} ${best}`,
          role: "option",
          style: `--part: ${speeds[n] / fastest}`,
          "data-number": number,
          onclick: () => this.recall(number),
        },
        sentence(entry),
      )
    })
    options.reverse()
    box.append(...options)
    this.list.show(options.map((option) => [option]))
    this.chosen = options.find(({dataset}) => dataset.number === at)
    if (this.chosen) this.list.mark(this.chosen)
  }

  choose(option) {
    this.chosen?.removeAttribute("aria-selected")
    this.chosen = option
    option.setAttribute("aria-selected", "true")
  }
}

/** Describe an edit: what was found about it, and what it changed. */
function sentence(entry) {
  const {gflops, bundles, registers, wavefronts, bound, n, note, change} = entry
  const where = n ? ` at N = ${inWhole(n)}` : ""
  const speed = gflops ? `${inWhole(gflops)} Gflop/s${where}, limited by ${bound}` : "not timed"
  const verdict = {right: speed, wrong: "C is incorrect", unjudged: "not checked"}
  const code = bundles && `${bundles} bundles, ${registers} registers, ${wavefronts} wavefronts`
  const origin = [note, change].filter(Boolean).join(", ")
  return [verdict[judgement(entry)], origin, code].filter(Boolean).join("; ")
}

/** "right", "wrong" or "unjudged". */
function judgement({right}) {
  if (right === null) return "unjudged"
  return right ? "right" : "wrong"
}
