// A step of the climb: its idea and its targets, above the workbench; below the editor, which nothing
// that an answer brings may move, its hints; and the climb.
import {make} from "../draw/shell.js"
import {makeSentence} from "./il_text.js"
import {inWhole} from "./numbers.js"

// Share of our solution's speed: one this close below it needs no hint, though the model tells two
// such speeds apart.
const WITHIN = 0.02
const HINT = "Stuck? Show a hint"
const CHECK = "[data-cypresskit-check]" // the output of a check

/**
 * @typedef {object} Target
 * @property {string} name
 * @property {number} gflops
 * @property {string} reached what is said of a kernel that is as fast
 * @property {string} [passed] what is said of a faster one, if it is something else
 * @property {boolean} [isRecord] whether only a faster one reaches it */

export class StepHead {
  /**
   * @param {HTMLElement} parent
   * @param {HTMLElement} hints where they are shown
   * @param {HTMLElement} below where the climb is shown
   * @param {Record<string, any>} step
   * @param {{share: () => void, more: () => void, restart: () => void}} owner */
  constructor(parent, hints, below, step, owner) {
    this.step = step
    this.saved = 0 // Gflop/s of the text that it saves
    this.speed = 0 // of a correct kernel
    /** @type {number | undefined} */
    this.fastest = undefined // no target is passed before the reader types
    const {title, idea, name, is_numbered} = step
    this.box = make(parent, "section", {class: "ckw-step"})
    const begin = make(this.box, "p", {class: "ckw-idea"})
    make(begin, "b", {}, is_numbered ? `${name} ${title}. ` : `${title}. `)
    makeSentence(begin, "span", {}, idea)
    this.targetsLine = make(this.box, "p", {class: "ckw-targets"})
    this.hint = make(hints, "details", {class: "ckw-hint"})
    make(this.hint, "summary", {}, "Hint")
    this.advice = make(this.hint, "div")
    this.buttons = make(below, "p", {class: "ckw-play"})
    const button = (text, onclick, attributes = {}) =>
      make(this.buttons, "button", {...attributes, onclick}, text)
    button("Share your climb", owner.share, {
      title: "One picture of your saved steps, which you can save as a file",
    })
    button("Begin this step again", owner.restart, {
      class: "ckw-book",
      title: "Your text stays in the history",
    })
    this.stuck = make(hints, "div", {hidden: ""})
    const more = {
      title:
        "With our registers, which may not be yours. The history says so if a whole line is shown.",
      onclick: owner.more,
    }
    this.more = make(this.stuck, "button", more, HINT)
    this.shown = make(this.stuck, "div", {role: "status"})
    this.climb = make(below, "div", {class: "ckw-climb"})
    this.showTargets()
  }

  /** The step saves another text, of so many Gflop/s; null: none. */
  showSaved(saved) {
    this.saved = saved ?? 0
    this.showTargets()
  }

  /** The reader can be shown one more line in some seconds; never if there are none. */
  showStuck(seconds) {
    clearTimeout(this.waits)
    this.stuck.hidden = seconds !== 0
    if (seconds) this.waits = setTimeout(() => this.showStuck(0), 1000 * seconds)
  }

  /** The text has changed: nothing is known about it. */
  forget() {
    this.speed = 0
    this.showTargets()
  }

  /** Show the speed of a correct kernel. `help` is what would make it faster; the step's own hint
   * follows it.
   * Returns what to say of the highest target that is passed for the first time (`passed`); or how
   * fast a kernel must be to pass, if this one is slower (`toPass`). */
  clocks(gflops, help) {
    this.speed = gflops
    this.advice.replaceChildren()
    for (const text of [help, this.step.hint]) if (text) makeSentence(this.advice, "p", {}, text)
    this.showTargets()
    const before = this.fastest ?? Number.POSITIVE_INFINITY
    this.fastest = Math.max(gflops, this.fastest ?? 0)
    const passes = (target) => !reaches(before, target) && reaches(gflops, target)
    const target = this.targets.findLast(passes)
    const {minimum} = this.step.targets
    if (gflops < minimum) return {toPass: `${inWhole(minimum)} to pass`}
    if (!target) return {}
    const isFaster = inWhole(gflops) !== inWhole(target.gflops)
    return {passed: `${inWhole(gflops)}: ${(isFaster && target.passed) || target.reached}`}
  }

  /** The reader begins to type: from now on, a new record may pass a target. */
  begin() {
    this.fastest ??= this.saved
    this.markChecks()
  }

  /** Mark the outputs of checks between this workbench and the next as old. */
  markChecks() {
    let bench
    for (const one of document.querySelectorAll(`.ckw, ${CHECK}`))
      if (one.matches(".ckw")) bench = one
      else if (bench?.contains(this.box)) one.setAttribute("data-cypresskit-check", "old")
  }

  /** The targets, the lowest first.
   * @returns {Target[]} */
  get targets() {
    const {targets, record} = this.step
    const {minimum, reference, published} = targets
    const past = `past ${record}'s ${inWhole(published)}`
    const all = [
      {name: "to pass", gflops: minimum, reached: "saved"},
      {
        name: "our solution",
        gflops: reference < minimum ? 0 : reference,
        reached: "as fast as our solution",
        passed: "faster than our solution",
      },
      {name: `${record}'s record, measured,`, gflops: published, reached: past, isRecord: true},
    ]
    return all.filter(({gflops}) => gflops).sort((one, other) => one.gflops - other.gflops)
  }

  showTargets() {
    const {speed, saved} = this
    const fastest = Math.max(speed, saved) // a later text takes no tick away
    this.targetsLine.replaceChildren("Targets in Gflop/s:")
    const show = (text, kind = "", tag = "span") => make(this.targetsLine, tag, {class: kind}, text)
    for (const target of this.targets) {
      const reached = reaches(fastest, target)
      const text = `${target.name} ${inWhole(target.gflops)}`
      show(reached ? `✓ ${text}` : text, reached ? "ckw-reached" : "")
    }
    show(saved ? `Saved: ${inWhole(saved)} Gflop/s` : "", "ckw-saved", "b")
    const helps = speed && speed < this.step.targets.reference * (1 - WITHIN)
    this.hint.hidden = !helps
  }

  /** Show the lines that a stuck reader asked for. */
  showLines({lines, hint, end}) {
    this.shown.replaceChildren()
    for (const line of [...lines, hint]) if (line) make(make(this.shown, "p"), "code", {}, line)
    make(this.shown, "p", {}, hint ? "Each ? is a source. Which ones?" : end)
    this.more.textContent = hint ? "Show this line" : HINT
  }

  /** Show the climb. */
  showClimb({picture}) {
    this.climb.innerHTML = picture
    if (this.buttons.matches(":focus-within")) this.climb.scrollIntoView({block: "nearest"})
  }
}

/** Return whether a speed reaches a target, or passes a record.
 * @param {number} speed
 * @param {Target} target */
function reaches(speed, {gflops, isRecord}) {
  return isRecord ? speed > gflops : speed >= gflops
}
