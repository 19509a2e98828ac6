// The site's workbench: the notebook's script, and a worker with the Python that answers it.
// ?step=02 names the step; after the "#" a shared link holds a text, deflated, in base64url.
// @ts-expect-error: the site has it beside this file
import widget from "./workbench.js"

const MAX_BYTES = 200_000 // of a kernel in an address
const WATCH_MS = 500 // between two checks of the worker
const begin = JSON.parse(document.getElementById("begin").textContent)
const named = new URLSearchParams(location.search).get("step")
const step = Object.hasOwn(begin.steps, named ?? "") ? named : begin.first
const typed = `cypresskit typed ${step}`
const element = (id) => document.getElementById(id)
const bar = /** @type {HTMLProgressElement} */ (element("bar"))

/** @param {string} text */
function showStatus(text, kind = "") {
  element("status").textContent = text
  element("status").dataset.kind = kind
}

/** Pass bytes through a stream. Fails if more than `most` bytes come out. */
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

/** Pack a text for an address.
 * @param {string} text */
export async function pack(text) {
  const bytes = new TextEncoder().encode(text)
  const packed = await through(bytes, new CompressionStream("deflate-raw"))
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("")
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
}

/** Unpack the text of an address.
 * @param {string} packed */
export async function unpack(packed) {
  const letters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"))
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0))
  const text = await through(bytes, new DecompressionStream("deflate-raw"), MAX_BYTES)
  return new TextDecoder("utf-8", {fatal: true}).decode(text)
}

/** Return the text of a shared link, or "". */
async function shared() {
  const packed = new URLSearchParams(location.hash.slice(1)).get("text")
  if (!packed) return ""
  try {
    return await unpack(packed)
  } catch {
    showStatus("The link holds no kernel that can be read. Here is yours.", "failed")
    return ""
  }
}

/** The text that was typed last, in the browser's storage until the worker has saved it in a file. */
const draft = {
  get: () => attempt(() => localStorage.getItem(typed)) ?? "",
  set: (text) => {
    draft.end() // an older one would be put into the file if this one doesn't fit
    attempt(() => localStorage.setItem(typed, text))
  },
  end: () => attempt(() => localStorage.removeItem(typed)),
}

function attempt(act) {
  try {
    return act()
  } catch {
    return undefined // the browser stores nothing
  }
}

/** The workbench and its worker. */
class Bench {
  constructor() {
    this.sent = "" // the text that the worker got last
    this.files = undefined // the reader's files, as the worker last sent them
    this.loaded = 0 // bytes
    this.shown = false
    this.listeners = new Set()
    element("bench").addEventListener("input", ({target}) => {
      if (target instanceof HTMLTextAreaElement) draft.set(target.value)
    })
    setInterval(() => this.watch(), WATCH_MS)
  }

  /** What is in the editor. */
  get text() {
    const area = /** @type {HTMLTextAreaElement?} */ (document.querySelector("#bench textarea"))
    return area?.value ?? ""
  }

  /** Start a worker. It puts these texts into the kernel's file, one after another, and doesn't
   * check one that equals `endless`. */
  start(texts, endless = "") {
    this.worker?.terminate()
    this.worker = new Worker("worker.js", {type: "module"})
    this.worker.onmessage = ({data}) => this.receive(data)
    this.worker.onerror = () => this.fail("its worker can't start")
    this.opened = false
    this.pending = 0 // messages that the worker hasn't finished
    this.newer = undefined // the edit that waits for the worker, and since when
    this.worker.postMessage({type: "begin", key: begin.key, files: this.files})
    this.post({type: "open", step, texts: texts.filter(Boolean), endless})
  }

  post(message) {
    this.pending += 1
    this.active = performance.now()
    this.worker.postMessage(message)
  }

  receive({type, content, bytes, text, texts, files, problem, message}) {
    this.active = performance.now()
    if (type === "loaded" && !this.shown) this.progress(bytes)
    if (type === "stage" && !this.shown) showStatus(text)
    if (type === "opened") this.show()
    if (type === "failed") this.fail(message)
    if (type === "say") {
      if (content.type === "state" || content.type === "text") this.sent = content.text
      if (content.edit === this.newer?.edit) this.newer = undefined
      this.notify(content)
    }
    if (type === "rested") {
      this.pending -= 1
      if (problem) showStatus(begin.problems[problem], "failed")
    }
    if (type === "changed") this.files = files
    if (type === "saved" && texts.includes(draft.get())) draft.end()
  }

  /** Pass a message to the workbench. */
  notify(content) {
    for (const listener of this.listeners) listener(content)
  }

  /** Draw the workbench as a notebook does, with this page as its kernel. After a restart, keep the
   * workbench that is there. */
  show() {
    this.opened = true
    bar.hidden = true
    showStatus("")
    if (this.newer) this.newer.since = performance.now()
    if (this.shown) {
      this.post({type: "hear", content: {type: "hello"}})
      return
    }
    this.shown = true
    const model = {
      send: (content) => this.send(content),
      on: (name, listener) => name === "msg:custom" && this.listeners.add(listener),
      off: (_, listener) => this.listeners.delete(listener),
    }
    widget.render({model, el: element("bench")})
  }

  send(content) {
    if (content.type === "text") {
      this.sent = content.text
      this.newer = {edit: content.edit, since: this.newer?.since ?? performance.now()}
      setTimeout(() => this.notify({type: "heard", edit: content.edit})) // the draft has it
    }
    this.post({type: "hear", content})
  }

  progress(bytes) {
    this.loaded += bytes
    bar.value = Math.min(this.loaded, begin.bytes)
    const [now, all] = [bar.value, begin.bytes].map((size) => Math.round(size / 1e6))
    showStatus(`Loaded ${now} of ${all} MB …`)
  }

  /** Restart a worker that keeps a newer text waiting, or that doesn't finish a text. */
  watch() {
    if (!this.opened) return
    const now = performance.now()
    const waits = this.newer && now - this.newer.since > begin.handover
    if (waits && this.text !== this.restarted) {
      this.restarted = this.text // once per text: a long one may itself take longer
      this.start([this.text])
      showStatus("The older text took long: Python restarts for this one …")
    } else if (this.pending && now - this.active > begin.silence) {
      this.giveUp("Checking this kernel took too long.")
    }
  }

  /** Restart the worker, which then doesn't check the text that it worked on. */
  giveUp(why) {
    this.start([this.text], this.sent)
    showStatus(`${why} Python restarts …`, "failed")
  }

  fail(why) {
    this.worker.onmessage = null // what it still loads is no news
    if (this.opened && this.sent !== this.crashed) {
      this.crashed = this.sent
      this.giveUp(`Checking this kernel failed (${why}).`)
      return
    }
    bar.hidden = true
    showStatus(`${begin.problems.failed} (${why})`, "failed")
  }
}

/** Share a link that holds the step and the text. */
async function share(bench) {
  if (new TextEncoder().encode(bench.text).length > MAX_BYTES) {
    showStatus(
      "This kernel is too long for a link: save its text as a file, and share that.",
      "failed",
    )
    return
  }
  const link = `${location.origin}${location.pathname}?step=${step}#text=${await pack(bench.text)}`
  history.replaceState(null, "", link)
  try {
    await navigator.clipboard.writeText(link)
    showStatus("The link is copied. It holds the whole kernel.")
  } catch {
    showStatus("The address of this page is the link: copy it. It holds the whole kernel.")
  }
}

async function start() {
  if (element("status").dataset.kind === "failed") return // the page has found what is missing
  bar.max = begin.bytes
  document.querySelector(`nav a[href="?step=${step}"]`)?.setAttribute("aria-current", "page")
  const bench = new Bench()
  element("share").addEventListener("click", () => share(bench))
  addEventListener("hashchange", () => location.reload())
  bench.start([draft.get(), await shared()])
  navigator.serviceWorker?.register("offline.js").catch(() => {})
}

start().catch((error) => showStatus(`${begin.problems.failed} (${error.message})`, "failed"))
