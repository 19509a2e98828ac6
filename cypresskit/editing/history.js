// The history of edits: a dot for each, as high as it is fast. Hover says what it changed, a click
// goes back to its text, and two that are picked are compared.
import {make} from "../draw/shell.js"

const HIGH = 68
const MOST_LINES = 500 // of a comparison, that are shown
const HINT = "Hover: what it changed. Click: back to its text."
const PICK = "Pick two edits."
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
    this.words = make(head, "span", {class: "ckw-soft"}, HINT)
    this.both = make(
      head,
      "button",
      {
        type: "button",
        "aria-pressed": "false",
        title: "What differs between two edits: press, then pick two (or Shift and click them)",
      },
      "compare two",
    )
    this.both.addEventListener("click", () => this.choosePair(!this.pairing))
    this.box = make(parent, "div", {
      class: "ckw-dots",
      role: "listbox",
      tabindex: "0",
      "aria-multiselectable": "true",
      "aria-label":
        "Your edits. Arrows move, Enter goes back to a text, Space on two compares them.",
    })
    this.box.addEventListener("keydown", (event) => this.press(event))
    this.box.addEventListener("mouseleave", () => this.mark())
    this.sheet = make(parent, "div", {class: "ckw-sheet", hidden: ""})
    this.sheet.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.closeSheet(event)
    })
    this.id = `ckw-dot-${Math.random().toString(36).slice(2)}`
  }

  /** `right` is null for a text that was never judged: changed outside, or never in the file.
   * @param {{number: number, gflops: number, right: boolean | null, bundles: number, registers: number,
   *   wavefronts: number, bound: string, n: number, note: string, change?: string}[]} entries */
  show(entries) {
    this.parent.hidden = !entries.length
    const grown = entries.length !== this.entries.length
    this.entries = entries
    this.picked = []
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
      const share = Math.min(1, this.entries[n].gflops / most) // a wrong one is no record
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
        "aria-selected": String(this.picked.includes(n)),
        "aria-label": this.sentence(entry),
        transform: `translate(${x} ${y})`,
      })
      make(group, "title", {}, this.sentence(entry))
      make(group, "circle", {r: 9, class: "ckw-hit"})
      if (kind === "wrong") make(group, "path", {d: "M-4-4 4 4M4-4-4 4"})
      else make(group, "circle", {r: kind === "best" ? 5.5 : 4.5})
      group.addEventListener("mouseenter", () => this.tell(n))
      group.addEventListener("click", ({shiftKey, ctrlKey, metaKey}) => {
        if (this.pairing || shiftKey || ctrlKey || metaKey) this.pick(n)
        else this.goBack(n)
      })
    })
    this.mark()
  }

  /** What an edit changed, and what it became. */
  sentence(entry) {
    const {gflops, bundles, registers, wavefronts, bound, n, note, change, others} = entry
    const where = n ? ` at N = ${n.toLocaleString("en")}` : ""
    const speed = gflops
      ? `${Math.round(gflops).toLocaleString("en")} Gflop/s${where}, bound by ${bound}`
      : "not timed"
    const code = `${bundles} bundles, ${registers} registers, ${wavefronts} wavefronts`
    const origin = [note, change].filter(Boolean).join(", ")
    const verdict = {right: speed, wrong: `C is wrong; ${speed}`, unjudged: others || "not judged"}
    return [origin, verdict[judgement(entry)], bundles ? code : ""].filter(Boolean).join("; ")
  }

  /** Say in words what a dot is. */
  tell(n) {
    this.words.textContent = this.sentence(this.entries[n])
    this.words.title = this.words.textContent
  }

  goBack(n) {
    this.at = n
    this.mark()
    this.owner.recall(this.entries[n].number)
  }

  /** Begin to pick two, or leave it. */
  choosePair(begins) {
    this.pairing = begins
    this.picked = []
    this.both.setAttribute("aria-pressed", String(begins))
    this.mark()
  }

  /** Pick a dot, or leave it out again. Two are compared. */
  pick(n) {
    this.at = n
    if (this.picked.includes(n)) this.picked = this.picked.filter((other) => other !== n)
    else this.picked.push(n)
    this.mark()
    if (this.picked.length < 2) return
    const [first, second] = [...this.picked].sort((a, b) => a - b)
    this.owner.compare(this.entries[first].number, this.entries[second].number)
    this.choosePair(false)
  }

  mark() {
    ;[...this.box.querySelectorAll(".ckw-dot")].forEach((dot, n) => {
      dot.setAttribute("aria-selected", String(this.picked.includes(n)))
      dot.classList.toggle("ckw-at", n === this.at)
    })
    if (this.at === undefined) this.box.removeAttribute("aria-activedescendant")
    else this.box.setAttribute("aria-activedescendant", `${this.id}-${this.at}`)
    if (this.picked.length) this.words.textContent = "And the other?"
    else if (this.pairing) this.words.textContent = PICK
    else if (this.at === undefined) this.words.textContent = HINT
    else this.tell(this.at)
  }

  press(event) {
    if (!this.entries.length || event.altKey || event.ctrlKey || event.metaKey) return
    const last = this.entries.length - 1
    const at = this.at ?? last
    const moves = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last}
    if (event.key in moves) {
      this.at = Math.max(0, Math.min(moves[event.key], last))
      this.mark()
      this.tell(this.at)
      this.box.querySelectorAll(".ckw-dot")[this.at].scrollIntoView({block: "nearest"})
    } else if (event.key === " ") this.pick(at)
    else if (event.key === "Enter") this.goBack(at)
    else if (event.key === "Escape" && (this.pairing || this.picked.length)) this.choosePair(false)
    else if (event.key === "Escape" && !this.sheet.hidden) return this.closeSheet(event)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  /** Close the comparison, and go back to the dots. */
  closeSheet(event) {
    this.sheet.hidden = true
    this.box.focus()
    event.preventDefault()
    event.stopPropagation()
  }

  /** Two texts side by side: what differs, with the lines around it. */
  compare({first, second, lines}) {
    const [one, two] = [first, second].map((n) => this.entries.find(({number}) => number === n))
    if (!one || !two) return
    this.sheet.hidden = false
    this.sheet.replaceChildren()
    const head = make(this.sheet, "div", {class: "ckw-panelhead"})
    make(head, "h3", {}, `${speedInWords(one)} → ${speedInWords(two)}`)
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
    close.addEventListener("click", (event) => this.closeSheet(event))
    const table = make(this.sheet, "div", {
      class: "ckw-lines",
      tabindex: "0",
      role: "region",
      "aria-label": "What differs",
    })
    let skipped = false
    let shown = 0
    lines.forEach(([mark, , , text], n) => {
      const near = lines.slice(Math.max(0, n - 2), n + 3).some(([other]) => other !== " ")
      if (!near) {
        if (!skipped) make(table, "div", {class: "ckw-skipped"}, "⋮")
        skipped = true
        return
      }
      skipped = false
      if (++shown > MOST_LINES) return
      const kind = {"+": "ckw-plus", "-": "ckw-minus"}[mark] ?? ""
      make(table, "div", {class: kind}, `${mark} ${text}`)
    })
    if (shown > MOST_LINES) make(table, "div", {class: "ckw-skipped"}, "and more lines differ")
    if (lines.every(([mark]) => mark === " ")) make(table, "div", {}, "The texts are the same.")
    this.sheet.scrollIntoView({block: "nearest"})
  }
}

/** "right", "wrong" or "unjudged". */
function judgement({right}) {
  if (right === null) return "unjudged"
  return right ? "right" : "wrong"
}

/** How fast an edit is, for the head of a comparison. */
function speedInWords(entry) {
  const speed = `${Math.round(entry.gflops).toLocaleString("en")} Gflop/s`
  return {right: speed, wrong: `${speed} (C is wrong)`, unjudged: "not judged"}[judgement(entry)]
}
