// The element that every picture is: a still, the sentence below it, the picture's data, and what
// plays once the scripts are there.
//
// The browser itself says when such an element comes and goes, in whatever order a notebook puts
// outputs and scripts on the page. It begins when it is near the screen, and gives back what it
// took when it leaves the page. Its still stays until it has begun, and comes back if it fails.
import {bringIntoView, isAwaited} from "./into_view.js"
import {followTheme} from "./shell.js"

// The fields of the data that these scripts read, as a number: Python puts it here and in the data.
const FORMAT = "$format"
const UNREADABLE =
  "This is a still: the picture was saved by another version of cypresskit. Run its cell again, " +
  "and it moves."
const BROKEN = "This is a still: the picture can't play here. Run its cell again, and it may."

/** What brings a kind of picture to life in an element. What gives back what it took goes into
 * `ends`. It returns what is to be done when the page's theme has changed, or a promise of that.
 * @typedef {(() => void)[]} Ends
 * @typedef {(box: HTMLElement, data: any, place: HTMLElement, ends: Ends) => any} Begin */

/** @type {Map<string, Record<string, Begin>>} what is loaded, by the format that it reads */
globalThis.cypresskitFormats ??= new Map()
const loaded = globalThis.cypresskitFormats

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  return JSON.parse(await new Response(stream).text())
}

class Picture extends HTMLElement {
  connectedCallback() {
    near.observe(this)
    this.awaited = isAwaited(this)
    if (this.awaited) this.begin()
    window.addEventListener("cypresskit-loaded", this)
  }

  disconnectedCallback() {
    near.unobserve(this)
    window.removeEventListener("cypresskit-loaded", this)
    // What is only moved on the page is there again.
    setTimeout(() => {
      if (!this.isConnected) this.end()
    })
  }

  handleEvent() {
    if (this.seen) this.begin()
  }

  /** Begin to play, if the scripts for it are there. */
  async begin() {
    this.seen = true
    if (this.running || document.readyState === "loading") {
      if (!this.running) document.addEventListener("DOMContentLoaded", this, {once: true})
      return
    }
    const kinds = loaded.get(this.dataset.format)
    const play = kinds?.[this.dataset.kind] ?? globalThis.cypresskitFigures?.[this.dataset.kind]
    if (kinds && !play) return // a toy's own script comes with it
    if (!kinds) {
      if (loaded.size) this.advise(UNREADABLE)
      return
    }
    const box = document.createElement("div")
    const run = {box, ends: [], recolor: undefined}
    this.running = run
    box.className = "cypresskit-beginning"
    try {
      const data = await unpack(this.querySelector(":scope > script").textContent)
      this.append(box)
      run.ends.push(followTheme(this, () => run.recolor?.()))
      run.recolor = await play(box, data, this, run.ends)
      if (this.running !== run) throw new Error("the picture left the page")
      box.classList.remove("cypresskit-beginning")
      this.showStill(false)
      box.dataset.ready = "yes"
      if (this.awaited) bringIntoView(this)
      this.awaited = false
    } catch (error) {
      console.error(error)
      stop(run)
      if (this.running === run) this.advise(BROKEN)
    }
  }

  /** Give back what the picture took. It begins again when it comes back to the page. */
  end() {
    const run = this.running
    if (!run) return
    this.running = null
    this.seen = false
    stop(run)
    this.showStill(true)
  }

  showStill(shown) {
    const still = this.querySelector(":scope > .cypresskit-still")
    still?.toggleAttribute("hidden", !shown)
  }

  advise(words) {
    this.showStill(true)
    const advice = this.querySelector(":scope > .cypresskit-still p")
    if (advice) advice.textContent = words
  }
}

function stop({box, ends}) {
  for (const end of ends.splice(0).reverse()) end()
  box.remove()
}

const near = new IntersectionObserver(
  (entries) => {
    for (const {isIntersecting, target} of entries)
      if (isIntersecting && target instanceof Picture) target.begin()
  },
  {rootMargin: "60% 0px", scrollMargin: "60% 0px"},
)

/** Tell the page's pictures what brings each kind to life. */
export function bringToLife(kinds, css) {
  if (!loaded.size) {
    document.head.append(Object.assign(document.createElement("style"), {textContent: css}))
    customElements.define("cypresskit-picture", Picture)
  }
  loaded.set(FORMAT, kinds)
  window.dispatchEvent(new Event("cypresskit-loaded"))
}
