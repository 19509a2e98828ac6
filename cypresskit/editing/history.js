// The history of edits: a dot for each, higher if it is faster. Hovering shows what it changed, and a
// click brings its text back.
import {make} from "../draw/shell.js"
import {arrowTo, keepKey} from "./arrows.js"

const HIGH = 68
const HINT = "Hover to see a change. Click to bring its text back."
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
    make(head, "h3", {}, "Your edits, by speed")
    this.words = make(head, "span", {class: "ckw-soft"}, HINT)
    this.box = make(parent, "div", {
      class: "ckw-dots",
      role: "listbox",
      tabindex: "0",
      "aria-label": "Your edits. Arrow keys move, Enter brings a text back.",
    })
    this.box.addEventListener("keydown", (event) => this.press(event))
    this.box.addEventListener("mouseleave", () => this.mark())
    this.id = `ckw-dot-${Math.random().toString(36).slice(2)}`
  }

  /** `right` is null for a text that was never checked.
   * @param {{number: number, gflops: number, right: boolean | null, bundles: number, registers: number,
   *   wavefronts: number, bound: string, n: number, note: string, change?: string}[]} entries */
  show(entries) {
    const grown = entries.length !== this.entries.length
    this.entries = entries
    if (this.at >= entries.length) this.at = undefined
    this.draw()
    if (grown) this.box.scrollLeft = this.box.scrollWidth
  }

  draw() {
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
    this.entries.forEach((entry, n) => {
      const [x, y] = place(n)
      const kind = n === best ? "best" : judgement(entry)
      const group = make(svg, "g", {
        class: `ckw-dot ckw-${kind}`,
        id: `${this.id}-${n}`,
        role: "option",
        "aria-selected": String(n === this.at),
        "aria-label": this.sentence(entry),
        transform: `translate(${x} ${y})`,
      })
      make(group, "title", {}, this.sentence(entry))
      make(group, "circle", {r: 9, class: "ckw-hit"})
      if (kind === "wrong") make(group, "path", {d: "M-4-4 4 4M4-4-4 4"})
      else make(group, "circle", {r: kind === "best" ? 5.5 : 4.5})
      group.addEventListener("mouseenter", () => this.tell(n))
      group.addEventListener("click", () => this.goBack(n))
    })
    this.mark()
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
  tell(n) {
    this.words.textContent = this.sentence(this.entries[n])
    this.words.title = this.words.textContent
  }

  goBack(n) {
    this.at = n
    this.mark()
    this.owner.recall(this.entries[n].number)
  }

  mark() {
    ;[...this.box.querySelectorAll(".ckw-dot")].forEach((dot, n) => {
      dot.setAttribute("aria-selected", String(n === this.at))
      dot.classList.toggle("ckw-at", n === this.at)
    })
    if (this.at === undefined) this.box.removeAttribute("aria-activedescendant")
    else this.box.setAttribute("aria-activedescendant", `${this.id}-${this.at}`)
    if (this.at === undefined) this.words.textContent = this.entries.length ? HINT : NONE
    else this.tell(this.at)
  }

  press(event) {
    if (!this.entries.length) return
    const at = this.at ?? this.entries.length - 1
    const place = arrowTo(event, [this.entries], [0, at])
    if (place) {
      this.at = place[1]
      this.mark()
      this.box.querySelectorAll(".ckw-dot")[this.at].scrollIntoView({block: "nearest"})
    } else if (event.key === "Enter") {
      this.goBack(at)
      keepKey(event)
    }
  }
}

/** "right", "wrong" or "unjudged". */
function judgement({right}) {
  if (right === null) return "unjudged"
  return right ? "right" : "wrong"
}
