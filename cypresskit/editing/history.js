// The history of edits: a dot for each, higher if it is faster. Hovering shows what it changed, and a
// click brings its text back.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"

const HIGH = 68
const HINT = "Hover over an edit to see its change. Click to bring its text back."
const STEP = 16
const NONE = "None yet."

export class History {
  /**
   * @param {HTMLElement} parent
   * @param {{recall: (entry: number) => void}} owner */
  constructor(parent, owner) {
    this.owner = owner
    this.entries = []
    const head = make(parent, "div", {class: "ckw-panelhead"})
    make(head, "h3", {}, "Your edits")
    this.words = make(head, "span", {class: "ckw-soft"}, HINT)
    this.box = make(parent, "div", {
      class: "ckw-dots",
      role: "listbox",
      "aria-label": "Your edits. Arrow keys move, Enter brings a text back.",
    })
    this.list = new KeyList(this.box, {
      chosen: (dot) => this.choose(dot),
      used: (dot) => this.use(dot),
    })
    this.box.addEventListener("mouseleave", () => this.tell(this.list.option))
  }

  /** `right` is null for a text that was never checked.
   * @param {{number: number, gflops: number, right: boolean | null, bundles: number, registers: number,
   *   wavefronts: number, bound: string, n: number, note: string, change?: string}[]} entries */
  show(entries) {
    const grown = entries.length !== this.entries.length
    this.entries = entries
    this.draw()
    if (grown) this.box.scrollLeft = this.box.scrollWidth
  }

  draw() {
    const at = this.dots?.indexOf(this.list.option) ?? -1
    const wide = Math.max(STEP * (this.entries.length + 1), 60)
    this.box.replaceChildren()
    const svg = make(this.box, "svg", {width: wide, height: HIGH, role: "presentation"})
    const good = this.entries.map((_, n) => n).filter((n) => this.entries[n].right)
    const fastest = Math.max(1, ...good.map((n) => this.entries[n].gflops))
    const most = good.length ? fastest : Math.max(1, ...this.entries.map(({gflops}) => gflops))
    const place = (n) => {
      const {right, gflops} = this.entries[n]
      const share = right === false ? 0 : Math.min(1, gflops / most) // an incorrect one has no speed
      return [STEP * (n + 1), HIGH - 10 - share * (HIGH - 22)]
    }
    make(svg, "polyline", {class: "ckw-way", points: good.map((n) => place(n).join()).join(" ")})
    const best = good.reduce(
      (top, n) => (top < 0 || this.entries[n].gflops > this.entries[top].gflops ? n : top),
      -1,
    )
    this.dots = this.entries.map((entry, n) => {
      const [x, y] = place(n)
      const kind = n === best ? "best" : judgement(entry)
      const group = make(svg, "g", {
        class: `ckw-dot ckw-${kind}`,
        role: "option",
        "aria-selected": "false",
        "aria-label": this.sentence(entry),
        transform: `translate(${x} ${y})`,
      })
      make(group, "title", {}, this.sentence(entry))
      make(group, "circle", {r: 9, class: "ckw-hit"})
      if (kind === "wrong") make(group, "path", {d: "M-4-4 4 4M4-4-4 4"})
      else make(group, "circle", {r: kind === "best" ? 5.5 : 4.5})
      group.addEventListener("mouseenter", () => this.tell(group))
      group.addEventListener("click", () => this.use(group))
      return group
    })
    this.list.show(this.dots.length ? [this.dots] : [], this.dots.at(-1))
    this.choose(this.dots[at])
  }

  /** Describe an edit: what it changed, and what was found about it. */
  sentence(entry) {
    const {gflops, bundles, registers, wavefronts, bound, n, note, change} = entry
    const where = n ? ` at N = ${n.toLocaleString("en")}` : ""
    const speed = gflops
      ? `${Math.round(gflops).toLocaleString("en")} Gflop/s${where}, limited by ${bound}`
      : "not timed"
    const code = `${bundles} bundles, ${registers} registers, ${wavefronts} wavefronts`
    const origin = [note, change].filter(Boolean).join(", ")
    const verdict = {right: speed, wrong: "C is incorrect", unjudged: "not checked"}
    return [origin, verdict[judgement(entry)], bundles ? code : ""].filter(Boolean).join("; ")
  }

  /** Describe a dot above the picture. */
  tell(dot) {
    const none = this.entries.length ? HINT : NONE
    this.words.textContent = dot ? this.sentence(this.entries[this.dots.indexOf(dot)]) : none
    this.words.title = this.words.textContent
  }

  choose(dot) {
    this.list.mark(dot)
    for (const each of this.dots) {
      each.setAttribute("aria-selected", String(each === dot))
      each.classList.toggle("ckw-at", each === dot)
    }
    this.tell(dot)
  }

  use(dot) {
    this.choose(dot)
    this.owner.recall(this.entries[this.dots.indexOf(dot)].number)
  }
}

/** "right", "wrong" or "unjudged". */
function judgement({right}) {
  if (right === null) return "unjudged"
  return right ? "right" : "wrong"
}
