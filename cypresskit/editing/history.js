// The history of edits: a dot for each, as high as it is fast. A click brings a text back; two that
// are picked are shown side by side.
import {make} from "../draw/shell.js"

const HIGH = 84
const STEP = 16

export class History {
  /**
   * @param {HTMLElement} parent
   * @param {{recall: (entry: number) => void, compare: (first: number, second: number) => void}}
   *   owner */
  constructor(parent, owner) {
    this.owner = owner
    this.parent = parent
    this.entries = []
    this.picked = []
    const head = make(parent, "div", {class: "ckw-panelhead"})
    make(head, "h3", {}, "Your edits, by Gflop/s")
    this.words = make(head, "span", {class: "ckw-soft"})
    this.buttons = make(head, "span", {class: "ckw-buttons"})
    this.back = make(this.buttons, "button", {type: "button", disabled: ""}, "bring back")
    this.both = make(this.buttons, "button", {type: "button", disabled: ""}, "compare")
    this.back.addEventListener("click", () => {
      this.owner.recall(this.entries[this.picked.at(-1)].number)
    })
    this.both.addEventListener("click", () => {
      const [first, second] = [...this.picked].sort((a, b) => a - b)
      this.owner.compare(this.entries[first].number, this.entries[second].number)
    })
    this.box = make(parent, "div", {
      class: "ckw-dots",
      role: "listbox",
      tabindex: "0",
      "aria-multiselectable": "true",
      "aria-label": "Your edits. Arrows move, Space picks, Enter brings the text back.",
    })
    this.box.addEventListener("keydown", (event) => this.press(event))
    this.sheet = make(parent, "div", {class: "ckw-sheet", hidden: ""})
    this.id = `ckw-dot-${Math.random().toString(36).slice(2)}`
  }

  /** @param {{number: number, gflops: number, right: boolean, bundles: number, registers: number,
   *   wavefronts: number, bound: string, n: number, note: string}[]} entries */
  show(entries) {
    this.parent.hidden = !entries.length
    const grown = entries.length !== this.entries.length
    this.entries = entries
    this.picked = this.picked.filter((n) => n < entries.length)
    this.draw()
    if (grown) this.box.scrollLeft = this.box.scrollWidth
  }

  draw() {
    const most = Math.max(1, ...this.entries.map(({gflops}) => gflops))
    const wide = Math.max(STEP * (this.entries.length + 1), 60)
    this.box.replaceChildren()
    const svg = make(this.box, "svg", {width: wide, height: HIGH, role: "presentation"})
    const place = (n) => [STEP * (n + 1), HIGH - 10 - (this.entries[n].gflops / most) * (HIGH - 22)]
    const good = this.entries.map((_, n) => n).filter((n) => this.entries[n].right)
    make(svg, "polyline", {class: "ckw-way", points: good.map((n) => place(n).join()).join(" ")})
    const best = good.reduce(
      (top, n) => (top < 0 || this.entries[n].gflops > this.entries[top].gflops ? n : top),
      -1,
    )
    this.entries.forEach((entry, n) => {
      const [x, y] = place(n)
      const kind = entry.right ? (n === best ? "best" : "right") : "wrong"
      const group = make(svg, "g", {
        class: `ckw-dot ckw-${kind}`,
        id: `${this.id}-${n}`,
        role: "option",
        "aria-selected": String(this.picked.includes(n)),
        "aria-label": this.sentence(entry),
        transform: `translate(${x} ${y})`,
      })
      make(group, "title", {}, this.sentence(entry))
      make(group, "circle", {r: 9, class: "ckw-hit"})
      if (entry.right) make(group, "circle", {r: n === best ? 5.5 : 4.5})
      else make(group, "path", {d: "M-4-4 4 4M4-4-4 4"})
      group.addEventListener("click", (event) => this.pick(n, event.shiftKey || event.ctrlKey))
      group.addEventListener("dblclick", () => this.owner.recall(entry.number))
    })
    this.mark()
  }

  sentence({gflops, right, bundles, registers, wavefronts, bound, n, note}) {
    const speed = gflops
      ? `${Math.round(gflops)} Gflop/s at N = ${n}, bound by ${bound}`
      : "not timed"
    const state = right ? speed : `C is wrong; ${speed}`
    return `${note ? `${note}: ` : ""}${state}; ${bundles} bundles, ${registers} registers, ${wavefronts} wavefronts`
  }

  pick(n, also) {
    this.at = n
    this.picked = also || this.picked.length === 1 ? [...this.picked.slice(-1), n] : [n]
    if (this.picked[0] === this.picked[1]) this.picked = [n]
    this.mark()
  }

  mark() {
    ;[...this.box.querySelectorAll(".ckw-dot")].forEach((dot, n) => {
      dot.setAttribute("aria-selected", String(this.picked.includes(n)))
      dot.classList.toggle("ckw-at", n === this.at)
    })
    if (this.at !== undefined)
      this.box.setAttribute("aria-activedescendant", `${this.id}-${this.at}`)
    const [last] = this.picked.slice(-1)
    /** @type {HTMLButtonElement} */
    this.back.disabled = last === undefined
    /** @type {HTMLButtonElement} */
    this.both.disabled = this.picked.length < 2
    this.words.textContent = last === undefined ? "" : this.sentence(this.entries[last])
  }

  press(event) {
    if (!this.entries.length || event.altKey || event.ctrlKey || event.metaKey) return
    const last = this.entries.length - 1
    const at = this.at ?? last
    const moves = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last}
    if (event.key in moves) {
      this.at = Math.max(0, Math.min(moves[event.key], last))
      this.mark()
      this.words.textContent = this.sentence(this.entries[this.at])
      this.box.querySelectorAll(".ckw-dot")[this.at].scrollIntoView({block: "nearest"})
    } else if (event.key === " ") this.pick(at, event.shiftKey)
    else if (event.key === "Enter") this.owner.recall(this.entries[at].number)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  /** Two texts side by side: what differs, with the lines around it. */
  compare({first, second, lines}) {
    this.sheet.hidden = false
    this.sheet.replaceChildren()
    const head = make(this.sheet, "div", {class: "ckw-panelhead"})
    const [one, two] = [first, second].map((n) => this.entries.find(({number}) => number === n))
    make(head, "h3", {}, `${Math.round(one.gflops)} → ${Math.round(two.gflops)} Gflop/s`)
    make(
      head,
      "span",
      {class: "ckw-soft"},
      [
        ["bundles", "bundles"],
        ["registers", "registers"],
        ["wavefronts", "wavefronts"],
        ["bound by", "bound"],
      ]
        .map(([words, name]) =>
          one[name] === two[name]
            ? `${words} ${one[name]}`
            : `${words} ${one[name]} → ${two[name]}`,
        )
        .join(", "),
    )
    const close = make(head, "button", {type: "button"}, "close")
    close.addEventListener("click", () => {
      this.sheet.hidden = true
      this.box.focus()
    })
    const table = make(this.sheet, "div", {
      class: "ckw-lines",
      tabindex: "0",
      role: "region",
      "aria-label": "What differs",
    })
    let skipped = false
    lines.forEach(([mark, , , text], n) => {
      const near = lines.slice(Math.max(0, n - 2), n + 3).some(([other]) => other !== " ")
      if (!near) {
        if (!skipped) make(table, "div", {class: "ckw-skipped"}, "⋮")
        skipped = true
        return
      }
      skipped = false
      const kind = {"+": "ckw-plus", "-": "ckw-minus"}[mark] ?? ""
      make(table, "div", {class: kind}, `${mark} ${text}`)
    })
    if (lines.every(([mark]) => mark === " ")) make(table, "div", {}, "The texts are the same.")
  }
}
