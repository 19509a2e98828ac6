// The site's workbench: the notebook's own script, and a worker with the Python that answers it.
// ?step=02 names the step; after the "#" a shared link holds a text, deflated, in base64url.
// @ts-expect-error: the site has it beside this file
import widget from "./workbench.js"

const LONGEST = 200_000 // characters of a kernel in an address
const begin = JSON.parse(document.getElementById("begin").textContent)
const asked = new URLSearchParams(location.search).get("step")
const step = Object.hasOwn(begin.steps, asked ?? "") ? asked : begin.first
const typed = `cypresskit typed ${step}`
const element = (id) => document.getElementById(id)
const bar = /** @type {HTMLProgressElement} */ (element("bar"))

/** @param {string} text */
function tell(text, kind = "") {
  element("status").textContent = text
  element("status").dataset.kind = kind
}

/** What a stream of bytes becomes, as bytes; at most so many. */
async function through(bytes, stream, most = Number.POSITIVE_INFINITY) {
  const chunks = []
  let length = 0
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length
    if (length > most) throw new RangeError("too long")
    chunks.push(part.value)
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer())
}

/** A text for an address.
 * @param {string} text */
export async function pack(text) {
  const bytes = new TextEncoder().encode(text)
  const packed = await through(bytes, new CompressionStream("deflate-raw"))
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("")
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
}

/** The text in an address.
 * @param {string} packed */
export async function unpack(packed) {
  const letters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"))
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0))
  const text = await through(bytes, new DecompressionStream("deflate-raw"), LONGEST)
  return new TextDecoder("utf-8", {fatal: true}).decode(text)
}

/** The text of a shared link, or "". */
async function shared() {
  const packed = new URLSearchParams(location.hash.slice(1)).get("text")
  if (!packed) return ""
  try {
    return await unpack(packed)
  } catch {
    tell("The link holds no kernel that can be read. Here is yours.", "failed")
    return ""
  }
}

/** What the browser keeps of this step's typing until the worker has it in a file. */
const draft = {
  get: () => attempt(() => localStorage.getItem(typed)) ?? "",
  set: (text) => attempt(() => localStorage.setItem(typed, text)),
  end: () => attempt(() => localStorage.removeItem(typed)),
}

function attempt(act) {
  try {
    return act()
  } catch {
    return undefined // the browser keeps nothing
  }
}

/** The workbench, and its worker. */
class Bench {
  constructor() {
    this.text = "" // on the page
    this.sent = "" // that the worker was given last
    this.busy = 0 // messages that it hasn't dealt with
    this.loaded = 0
    this.heard = new Map()
    this.stop = () => {}
    element("bench").addEventListener("input", ({target}) => {
      if (!(target instanceof HTMLTextAreaElement)) return
      this.text = target.value
      draft.set(this.text)
    })
    setInterval(() => this.watch(), 1000)
  }

  /** Begin a worker, with a text that it puts into the file; it doesn't try an endless one. */
  start(text, endless = "") {
    this.worker = new Worker("worker.js", {type: "module"})
    this.worker.onmessage = ({data}) => this.hear(data)
    this.worker.onerror = () => this.fail("its worker can't start")
    this.busy = 0
    this.worker.postMessage({type: "begin", key: begin.key})
    this.ask({type: "open", step, text, endless})
  }

  ask(message) {
    this.busy += 1
    this.since = performance.now()
    this.worker.postMessage(message)
  }

  hear({type, content, bytes, text, texts, problem, message}) {
    this.since = performance.now()
    if (type === "loaded") this.progress(bytes)
    if (type === "stage") tell(text)
    if (type === "opened") this.show()
    if (type === "failed") this.fail(message)
    if (type === "say") {
      if (content.type === "state") this.text = this.sent = content.text
      for (const hear of this.heard.get("msg:custom") ?? []) hear(content)
    }
    if (type === "rested") {
      this.busy -= 1
      if (problem) tell(begin.problems[problem], "failed")
    }
    if (type === "saved" && texts.includes(draft.get())) draft.end()
  }

  /** Draw the workbench as a notebook does, with this page for its kernel. */
  show() {
    this.up = true
    bar.hidden = true
    tell("")
    this.stop()
    this.heard.clear()
    element("bench").replaceChildren()
    const model = {
      send: (content) => {
        if (content.type === "text") this.text = this.sent = content.text
        this.ask({type: "hear", content})
      },
      on: (name, hear) => this.heard.set(name, [...(this.heard.get(name) ?? []), hear]),
      off: (name, hear) =>
        this.heard.set(
          name,
          (this.heard.get(name) ?? []).filter((one) => one !== hear),
        ),
    }
    this.stop = widget.render({model, el: element("bench")}) ?? (() => {})
  }

  progress(bytes) {
    this.loaded += bytes
    bar.value = Math.min(this.loaded, begin.bytes)
    const [now, all] = [bar.value, begin.bytes].map((size) => Math.round(size / 1e6))
    tell(`${now} of ${all} MB are here …`)
  }

  /** End a worker that is busy for too long, and begin another one, without the text that it was
   * busy with. */
  watch() {
    if (!this.up || !this.busy || performance.now() - this.since < begin.silence) return
    this.worker.terminate()
    this.start(this.text, this.sent)
    tell("This kernel took too long, and was ended. Edit it to try again.", "failed")
  }

  fail(why) {
    bar.hidden = true
    tell(`${begin.problems.failed} (${why})`, "failed")
  }
}

/** Share a link that holds the step and the text. */
async function share(bench) {
  const link = `${location.origin}${location.pathname}?step=${step}#text=${await pack(bench.text)}`
  history.replaceState(null, "", link)
  try {
    await navigator.clipboard.writeText(link)
    tell("The link is copied. It holds the whole kernel.")
  } catch {
    tell("The address of this page is the link: copy it. It holds the whole kernel.")
  }
}

async function start() {
  bar.max = begin.bytes
  document.querySelector(`nav a[href="?step=${step}"]`)?.setAttribute("aria-current", "page")
  const bench = new Bench()
  element("share").addEventListener("click", () => share(bench))
  addEventListener("hashchange", () => location.reload())
  bench.start((await shared()) || draft.get())
  navigator.serviceWorker?.register("offline.js").catch(() => {})
}

start().catch((error) => tell(`${begin.problems.failed} (${error.message})`, "failed"))
