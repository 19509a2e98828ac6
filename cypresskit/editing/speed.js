// The speed of a correct kernel, its change since the text before, and the target that it passes.
import {make} from "../draw/shell.js"
import {inWhole} from "./numbers.js"

export class Speed {
  /** @param {HTMLElement} head */
  constructor(head) {
    this.passed = make(head, "p", {class: "ckw-passed ckw-of-clocks", role: "status"})
    this.line = make(head, "p", {class: "ckw-speed ckw-of-clocks"})
    /** @type {number | undefined} */
    this.gflops = undefined // of the last correct kernel
    this.before = this.gflops // of the one before this text
  }

  /** The text has changed. */
  forget() {
    this.before = this.gflops
  }

  /** Show the target that is passed, or what is needed to pass; and no speed yet. */
  showTarget(passed = "", toPass = "") {
    this.passed.textContent = passed || toPass
    this.passed.classList.toggle("ckw-soft", !passed)
    this.line.replaceChildren()
  }

  /** Show the speed of a product of a size. Returns how it is spoken. */
  show(gflops, size) {
    const shown = inDigits(gflops)
    const isSquare = size.every((side) => side === size[0])
    const where = isSquare ? `N = ${inWhole(size[0])}` : size.map(inWhole).join(" x ")
    make(this.line, "b", {}, shown)
    make(this.line, "span", {}, ` Gflop/s at ${where}`)
    const change = gflops - (this.before ?? gflops)
    const [kind, sign] = change > 0 ? ["ckw-more", "+"] : ["ckw-less", "−"]
    if (inDigits(gflops - change) !== shown)
      make(this.line, "span", {class: kind}, ` ${sign}${inDigits(Math.abs(change))}`)
    this.gflops = gflops
    return `${shown} gigaflops at ${where}`
  }
}

/** Return a speed in at least three digits. */
function inDigits(gflops) {
  const short = gflops.toLocaleString("en", {maximumSignificantDigits: 3})
  return gflops < 1000 ? short : inWhole(gflops)
}
