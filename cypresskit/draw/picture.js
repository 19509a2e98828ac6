// The custom element of every picture: its text (in a saved lesson, an image), a sentence below it,
// and the packed data.
//
// The browser reports when such an element is added and removed, so outputs and scripts may come in
// any order. A picture starts when it is near the screen, and releases its resources when it leaves
// the page. Text or image are visible until the picture has started, and again if it fails.
import {bringIntoView, isAwaited} from "./into_view.js"
import {followTheme} from "./shell.js"

// The number of the data format that these scripts read. Python writes it here and into the data.
const FORMAT = "$format"
const UNREADABLE =
  "This picture was saved by another version of cypresskit. Run its cell again to play it."
const BROKEN = "This picture can't play here. Run its cell again."

/** Starts a kind of picture in an element. Functions that release its resources are added to
 * `ends`. Returns what has to be done when the page's theme changes, or a promise of that.
 * @typedef {(() => void)[]} Ends
 * @typedef {(box: HTMLElement, data: any, place: HTMLElement, ends: Ends) => any} Begin */

/** @type {Map<string, Record<string, Begin>>} the loaded functions, by their data format */
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
    // An element that is only moved on the page is connected again by then.
    setTimeout(() => {
      if (!this.isConnected) this.end()
    })
  }

  handleEvent() {
    if (this.seen) this.begin()
  }

  /** Start the picture, if its scripts are loaded. */
  async begin() {
    this.seen = true
    if (this.running || document.readyState === "loading") {
      if (!this.running) document.addEventListener("DOMContentLoaded", this, {once: true})
      return
    }
    const kinds = loaded.get(this.dataset.format)
    const play = kinds?.[this.dataset.kind] ?? globalThis.cypresskitFigures?.[this.dataset.kind]
    if (kinds && !play) return // an interactive figure's own script follows it
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

  /** Release the picture's resources. It starts again when it comes back to the page. */
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
    this.dataset.advised = "yes"
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

/** Register the functions that start each kind of picture. */
export function bringToLife(kinds, css) {
  if (!loaded.size) {
    document.head.append(Object.assign(document.createElement("style"), {textContent: css}))
    customElements.define("cypresskit-picture", Picture)
  }
  loaded.set(FORMAT, kinds)
  window.dispatchEvent(new Event("cypresskit-loaded"))
}
