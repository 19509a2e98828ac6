// A step of the climb: its idea and its targets, above the workbench; and its views, below.
import {followTheme, make} from "../draw/shell.js"
import {inWhole} from "./figures.js"
import {makeSentence} from "./il_text.js"

const TEXEL = 4 // numbers
const NUMBER = 7 // pixels, of a number that is drawn
const CHECK = "[data-cypresskit-check]" // the output of a check

export class StepHead {
  /**
   * @param {HTMLElement} parent
   * @param {HTMLElement} below where views are shown
   * @param {{ask: (view: string) => void, loadReference: () => void}} owner */
  constructor(parent, below, owner) {
    this.owner = owner
    this.box = make(parent, "section", {class: "ckw-step"})
    this.idea = make(this.box, "p", {class: "ckw-idea"})
    this.targetsLine = make(this.box, "p", {class: "ckw-targets"})
    this.hint = make(this.box, "details", {class: "ckw-hint", hidden: ""})
    this.buttons = make(below, "p", {class: "ckw-play"})
    this.played = make(below, "div", {class: "ckw-played"})
    /** @type {number | undefined} */
    this.fastest = undefined // no target is passed before the reader types
  }

  /** @param {Record<string, any>} step */
  show(step) {
    this.step = step
    const {title, idea, views, name} = step
    this.idea.replaceChildren()
    make(this.idea, "b", {}, /^\d/.test(name) ? `${name} ${title}. ` : `${title}. `)
    makeSentence(this.idea, "span", {}, idea)
    this.buttons.replaceChildren()
    const button = (words, onclick, attributes = {}) =>
      make(this.buttons, "button", {...attributes, onclick}, words)
    const {ask, loadReference} = this.owner
    for (const [view, words] of views)
      button(words, () => {
        this.played.textContent = "Drawing …"
        ask(view)
      })
    button("Share your climb", () => ask("climb"), {
      title: "One picture of your saved steps, which you can save as a file",
    })
    button("Load reference kernel", loadReference, {
      class: "ckw-book",
      title: "Your text stays in the history",
    })
    this.showTargets()
  }

  /** The step saves another text. */
  showSaved(saved) {
    this.step = {...this.step, ...saved}
    this.showTargets()
  }

  /** The text has changed: nothing is known about it. */
  forget() {
    this.gflops = undefined
    this.right = false
    this.showTargets()
  }

  /** Show the speed. Returns the highest target that is passed for the first time, in words, or "". */
  clocks(gflops, right) {
    this.gflops = gflops
    this.right = right
    this.showTargets()
    if (!right) return ""
    const before = this.fastest ?? Number.POSITIVE_INFINITY
    this.fastest = Math.max(gflops, this.fastest ?? 0)
    const passes = ([, target]) => !reaches(before, target) && reaches(gflops, target)
    const passed = this.targets.findLast(passes)
    return passed ? `${inWhole(gflops)}: ${passed[2]}` : ""
  }

  /** The reader begins to type: from now on, a new record may pass a target. */
  begin() {
    this.fastest ??= this.step.kept?.gflops ?? 0
    for (const check of this.checks()) check.dataset.cypresskitCheck = "old"
  }

  /** Return the outputs of checks between this workbench and the next. */
  checks() {
    const host = this.box.closest(".ckw")
    const found = document.querySelectorAll(`.ckw, ${CHECK}`)
    const all = /** @type {HTMLElement[]} */ ([...found])
    const after = all.slice(all.indexOf(host) + 1)
    const next = after.findIndex((one) => one.matches(".ckw"))
    return host ? after.slice(0, next < 0 ? after.length : next) : []
  }

  /** [name, Gflop/s, message when it is passed] of each target. */
  get targets() {
    const {targets, record, name} = this.step
    const {minimum, reference, published} = targets
    const all = [
      ["to pass", minimum, `saved as your step ${name}`],
      ["our solution", reference, "as fast as our solution"],
      [`${record}'s record`, published, `past ${record}'s ${inWhole(published)}`],
    ]
    return all.filter(([, target]) => target)
  }

  showTargets() {
    const {targets, within, kept, hint, begun, blocks = []} = this.step
    this.targetsLine.replaceChildren("Targets in Gflop/s:")
    const speed = this.right ? (this.gflops ?? 0) : 0
    for (const [words, target] of this.targets) {
      const reached = reaches(speed, target)
      const near = !reached && speed >= target * (1 - within)
      const distance = near ? `, less than ${100 * within} % away` : ""
      const kind = reached || near ? "ckw-reached" : ""
      const text = `${reached ? "✓ " : ""}${words} ${inWhole(target)}${distance}`
      make(this.targetsLine, "span", {class: kind}, text)
    }
    if (kept) {
      const own = kept.gflops ? `: ${inWhole(kept.gflops)} Gflop/s` : ""
      const from = /^brought/.test(kept.note) ? `, ${kept.note}` : ""
      const words = `Saved as your step ${this.step.name}${own}${from}`
      make(this.targetsLine, "b", {class: "ckw-kept"}, words)
    }
    if (begun && !kept) make(this.targetsLine, "span", {}, begun)
    this.hint.replaceChildren()
    make(this.hint, "summary", {}, "Hint")
    makeSentence(this.hint, "p", {}, hint)
    const growth = make(this.hint, "div", {class: "ckw-growth"})
    for (const block of blocks) drawBlock(growth, block)
    const fast = this.right && speed >= targets.reference * (1 - within)
    // A block that grows is incorrect until it is whole.
    this.hint.hidden = !hint || fast || !(this.right || blocks.length)
  }

  /** Show a picture, or a view in a frame, which gets this page's theme with its HTML. */
  view({page, problem = "", picture = ""}) {
    this.stopTheme?.()
    this.played.innerHTML = picture
    if (problem) make(this.played, "p", {class: "ckw-bad"}, problem)
    if (page) this.stopTheme = showPage(make(this.played, "div"), page)
    this.played.scrollIntoView({block: "nearest"})
  }

  end() {
    this.stopTheme?.()
  }
}

/** Show a page in a frame that follows the theme. Returns a function that stops it. */
function showPage(place, page) {
  let shown
  const fit = ({source, data}) => {
    const frame = place.querySelector("iframe")
    if (source === frame.contentWindow) frame.style.height = `${data}px`
  }
  window.addEventListener("message", fit)
  const stop = followTheme(place, () => {
    const {look} = place.dataset
    if (look === shown) return
    shown = look
    place.replaceChildren() // a frame that is given another page while out of sight may stay blank
    const srcdoc = page
      .replace("<html ", `<html style="color-scheme: ${look}" `)
      .replace("<body ", `<body data-theme="${look}" data-look="${look}" `)
    make(place, "iframe", {title: "A view of this kernel", sandbox: "allow-scripts", srcdoc})
  })
  return () => {
    stop()
    window.removeEventListener("message", fit)
  }
}

/** Draw the block of C that a work-item computes, with the texels of A to its left and of B above it,
 * and a register for each four sums. */
function drawBlock(parent, [rows, columns]) {
  const [down, across] = [rows / TEXEL, columns / TEXEL]
  const at = (texels, axis) => (texels > 1 ? `${texels}${axis}` : axis)
  const words =
    `${rows} x ${columns}: first texel of A at ${at(down, "y")}, of B at ${at(across, "x")}; ` +
    `${down + across} fetches, ${rows * across} registers of sums, ${rows} rows to store`
  const figure = make(parent, "figure", {})
  const left = TEXEL * NUMBER + 6
  const top = NUMBER + 6
  const size = {width: left + columns * NUMBER, height: top + rows * NUMBER}
  const svg = make(figure, "svg", {...size, role: "img", "aria-label": words})
  const box = (x, y, width, height, color) =>
    make(svg, "rect", {x, y, width: width - 2, height: height - 2, fill: `var(--ck-${color})`})
  const texel = TEXEL * NUMBER
  for (let n = 0; n < down; n++) box(left - NUMBER - 4, top + n * texel, NUMBER, texel, "a")
  for (let n = 0; n < across; n++) box(left + n * texel, 0, texel, NUMBER, "b")
  for (let row = 0; row < rows; row++)
    for (let n = 0; n < across; n++) box(left + n * texel, top + row * NUMBER, texel, NUMBER, "c")
  make(figure, "figcaption", {}, words)
}

/** Return whether a speed reaches a target, as both are shown. */
function reaches(gflops, target) {
  return Math.round(gflops) >= Math.round(target)
}
