// The site's workbench: the notebook's script, and the Python that answers it (host.js).
// ?step=02 names the step, or a kernel of the site's first page. That page shows this one in a frame,
// by ?embed, and sends it "open" with another step, what is next there, and whether the reader goes there to
// type, also on a screen with a keyboard of its own: the Python that runs goes on. After the "#" a shared link
// holds a text, deflated, in base64url, and perhaps its speed.
import {Host, lock} from "./host.js"
// @ts-expect-error: the site has it beside this file
import {Workbench} from "./workbench.js"

const MAX_BYTES = 200_000 // of a kernel in an address
const WATCH_MS = 500 // between two checks of the worker
const STORE = "cypresskit-climb"
const VISITED = "cypresskit visited" // in the browser's storage: IL was explained
const STORE_TIMEOUT = 2000 // milliseconds until the store can't be opened
const HANDS = ["wheel", "touchstart", "keydown", "pointerdown"]
const HAS_KEYS = matchMedia("(hover: hover)").matches // and so no keyboard that covers the page
let isGoing = HAS_KEYS // the reader, to the editor once it is there, unless they do something else
let ready = "" // what is said then
const AREA = /** @type {"textarea"} */ ("#bench textarea")
/** @type {any} */
const page = window
const {begin, showStatus, showKernel} = page
const isEmbedded = document.body.classList.contains("embed")
const inWhole = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0})
const element = (id) => document.getElementById(id)
const bar = /** @type {HTMLProgressElement} */ (element("bar"))

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

const isLink = () => location.hash.length > 1 && !document.querySelector(":target") // or a place

/** Read the fragment of a shared link: {text, from, problem}. */
async function readLink() {
  if (!isLink()) return {}
  const held = new URLSearchParams(location.hash.slice(1))
  const speed = Number(held.get("speed"))
  const from = speed > 0 ? `, at ${inWhole.format(speed)} Gflop/s` : ""
  try {
    const text = await unpack(held.get("text") ?? "")
    if (!text.trim()) throw new RangeError("empty")
    return {text, from}
  } catch {
    return {problem: "The link holds no kernel that can be read: it is cut off, or damaged."}
  }
}

/** The text that was typed last, in the browser's storage until it is saved in a file. */
const draft = {
  get: () => attempt(() => localStorage.getItem(draft.key)) ?? "",
  set: (text) => {
    draft.end() // an older one would be put into the file if this one doesn't fit
    attempt(() => localStorage.setItem(draft.key, text))
  },
  end: () => attempt(() => localStorage.removeItem(draft.key)),
  get key() {
    return `cypresskit typed ${page.step}`
  },
}

function attempt(act) {
  try {
    return act()
  } catch {} // the browser stores nothing
}

// -- the browser's store: the reader's files, for the one tab that has the lock

const done = (request) =>
  new Promise((go, fail) => {
    request.onsuccess = () => go(request.result)
    request.onerror = () => fail(request.error)
  })

/** Open the browser's store. Return the reader's files, and a function that saves them; or the
 * problem. */
async function openStore() {
  const isOurs = await lock(STORE)
  const late = new Promise((_, fail) => setTimeout(fail, STORE_TIMEOUT))
  const {all, write} = await Promise.race([openBase(), late])
  return isOurs ? {all, write} : {all, problem: "other tab"}
}

async function openBase() {
  const opening = indexedDB.open(STORE, 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore("files")
  const base = await done(opening)
  const files = (mode) => base.transaction("files", mode).objectStore("files")
  const write = async (all) => done(files("readwrite").put(all, "all"))
  return {all: await done(files("readonly").get("all")), write}
}

/** The workbench and its Python. */
class Bench {
  constructor(store, link) {
    const {key, launches} = begin
    const hear = (message) => this.receive(message)
    this.host = new Host({key, module: "page_python", launches}, hear)
    this.store = store
    this.link = link
    /** @type {Map<string, Uint8Array>} */
    this.files = store.all ?? new Map() // the reader's files
    /** @type {any} */
    this.newest = undefined // the message with the text that the worker has, or gets
    this.speed = 0 // of that text, if it is correct
    this.asked = 0 // when the first text was, until its verdict
    this.first = 0 // milliseconds until that: on a slow device, a restart takes long
    this.shown = false
    this.saving = Promise.resolve()
    this.listeners = new Set()
    this.keepsDraft = store.problem !== "other tab" // whose text it is
    element("bench").addEventListener("input", ({target}) => {
      if (this.keepsDraft && target instanceof HTMLTextAreaElement) draft.set(target.value)
    })
    setInterval(() => this.watch(), WATCH_MS)
  }

  /** What is in the editor. */
  get text() {
    return document.querySelector(AREA)?.value ?? ""
  }

  /** Start Python, with a text in the kernel's file. It puts that of the link in its place, and
   * doesn't check one that equals `endless`. A workbench that is there continues with its text. */
  start(text, linked = "", endless = "") {
    this.opened = false
    this.pending = 0 // messages that the worker hasn't finished
    this.newer = undefined // the edit that waits for the worker, and since when
    const files = [...this.files]
    if (text) files.push([`${page.step}.il`, new TextEncoder().encode(text)])
    this.host.start(files)
    this.ask(linked, endless)
    if (this.shown) this.post({type: "hear", content: this.newest ?? {type: "hello"}})
  }

  /** Have the worker open the page's step. */
  ask(linked = "", endless = "") {
    this.post({type: "open", step: page.step, n: begin.steps[page.step].n, linked, endless})
  }

  /** Show another step, with the Python that runs. */
  open(name, next = "", types = false) {
    this.around = next
    isGoing = types || HAS_KEYS
    if (name === page.step && this.shown) this.goOn()
    if (name === page.step || !begin.steps[name]) return
    element("status").after(element("next"))
    if (element("status").dataset.kind !== "failed") showStatus("")
    page.step = name
    this.opened = this.shown = false
    this.newest = this.newer = undefined
    this.speed = 0
    this.end?.()
    this.listeners.clear()
    element("bench").replaceChildren()
    element("next").replaceChildren()
    const saved = this.files.get(`${name}.il`)
    const text = draft.get() || (saved && new TextDecoder().decode(saved))
    showKernel(text || begin.steps[name].starter)
    const data = draft.get() && new TextEncoder().encode(draft.get())
    if (data) this.host.post({type: "file", name: `${name}.il`, data})
    this.ask()
  }

  post(message) {
    this.pending += 1
    this.active = performance.now()
    this.host.post(message)
  }

  receive(data) {
    const {type, content} = data
    this.active = performance.now()
    if (type === "loaded" && !this.shown) this.progress(data.bytes)
    if (type === "stage" && !this.shown) showStatus(data.text)
    if (type === "opened" && data.step === page.step) this.show(data.replaced)
    if (type === "failed") this.fail(data.message, data.problem)
    if (type === "say" && this.opened) this.hear(content)
    if (type === "rested") this.pending -= 1
    if (type === "files") this.saving = this.save(data)
  }

  /** Take a message of the workbench's Python. */
  hear(content) {
    const isText = content.type === "state" || content.type === "text"
    if (isText && !this.newer) this.take(content) // or else an older one
    if (content.type === "state" && !attempt(() => localStorage.getItem(VISITED))) {
      attempt(() => localStorage.setItem(VISITED, "yes"))
      content.newcomer = true
    }
    if (content.edit === this.newer?.edit) this.newer = undefined
    if (content.part === "verdict" && this.asked) {
      this.first = performance.now() - this.asked
      this.asked = 0
    }
    if (content.part === "clocks" && !this.newer) this.setSpeed(content.gflops ?? 0)
    if (!isEmbedded) this.showNext(content.history?.saved ?? content.saved)
    this.tell(content)
    this.goOn()
    if (content.part !== "verdict" || this.isReady) return
    this.isReady = true
    if (element("status").textContent) return
    const area = document.querySelector(AREA)
    const line = area.value.slice(0, area.selectionStart).split("\n").length
    const types = document.hasFocus() && document.activeElement === area
    const advice = HAS_KEYS ? `The caret is at line ${line}.` : `Tap line ${line} to edit it.`
    ready = types ? `Ready to edit, at line ${line}.` : `Ready. ${advice}`
    showStatus(ready)
  }

  /** Go to the editor, if the reader comes to type: whoever is told to be ready types there. */
  goOn() {
    const area = document.querySelector(AREA)
    if (isGoing) area?.focus({preventScroll: true})
    isGoing &&= !area
  }

  /** Take a text, whoever has changed it. Whether it is correct isn't known yet. */
  take({edit, text}) {
    this.newest = {type: "text", edit, text}
    this.setSpeed(0)
  }

  /** Note the newest text's speed: 0 until C is known to be correct. */
  setSpeed(gflops) {
    this.speed = gflops
    document.body.classList.toggle("correct", gflops > 0)
    if (!isEmbedded) return
    const {starter, targets} = begin.steps[page.step]
    const isOwn = this.newest.text !== starter // what the reader is given passes nothing
    const isRight = isOwn && gflops > 0 && gflops >= (targets?.minimum ?? 0)
    tellPage({type: "clocks", step: page.step, isRight})
    this.offer(isRight ? this.around : "")
  }

  /** Pass a message to the widget. */
  tell(content) {
    for (const listener of this.listeners) listener(content)
  }

  /** After a passed step: a link to the next one. */
  showNext(saved) {
    const {next} = begin.steps[page.step]
    if (saved && next) this.offer("Next step", `?step=${next}`, `: ${page.titleOf(next)}`)
  }

  /** Show a link beside the verdict, or none; `more` of its words where there is room. In a frame, the
   * page around this one follows it. */
  offer(words = "", href = "", more = "") {
    const shown = element("next").firstChild?.textContent ?? ""
    if (shown === words + more) return // it is spoken
    const link = Object.assign(document.createElement("a"), {href, textContent: words})
    if (more) link.appendChild(document.createElement("span")).textContent = more
    const keys = Object.assign(document.createElement("kbd"), {textContent: " Escape, Shift+Tab"})
    element("next").replaceChildren(...(words ? [link, keys] : []))
  }

  async save({changed, removed}) {
    for (const [name, data] of changed) this.files.set(name, data)
    for (const name of removed) this.files.delete(name)
    const texts = changed.map(([, data]) => new TextDecoder().decode(data))
    try {
      await this.store.write?.(this.files)
      if (this.store.write && texts.includes(draft.get())) draft.end()
    } catch {
      this.store = {problem: "no storage"} // the page keeps what is typed, if it can
      showStatus(begin.problems["no storage"], "failed")
    }
  }

  /** Draw the workbench as a notebook does, with this page as its kernel. After a restart, keep the
   * workbench that is there. */
  show(replaced) {
    this.opened = true
    bar.hidden = true
    this.showNews(replaced)
    if (this.newer) this.newer.since = performance.now()
    else this.asked = performance.now()
    if (this.shown) return
    this.shown = true
    const channel = {
      send: (content) => this.send(content),
      listen: (hear) => {
        this.listeners.add(hear)
        return () => this.listeners.delete(hear)
      },
    }
    isGoing ||= element("kernel").contains(document.activeElement)
    this.isReady = false // to be typed in
    element("kernel").replaceChildren()
    const begun = () => document.querySelector("#bench .ckw-head").append(element("next"))
    const bench = new Workbench(element("bench"), channel, begun)
    this.end = () => bench.end()
    if (isEmbedded) tellPage({type: "opened", step: page.step})
  }

  /** Say what came of a link. Its text is taken once: a reload shows what was typed since. */
  async showNews(replaced) {
    const {text, from, problem} = this.link
    const trouble = [begin.unknown, problem, begin.problems[this.store.problem]].filter(Boolean)
    const yours = replaced ? " Yours is in History." : ""
    const came = text ? [`This kernel came with the link${from}.${yours}`] : []
    const kind = trouble.length ? "failed" : came.length ? "news" : ""
    showStatus([...trouble, ...came].join(" "), kind)
    if (text && this.store.write) draft.end()
    else if (text && this.keepsDraft) draft.set(text)
    await this.saving
    if (location.hash && this.keepsDraft)
      history.replaceState(null, "", location.pathname + location.search)
    this.link = {}
  }

  send(content) {
    if (content.type === "text") {
      this.take(content)
      this.newer = {edit: content.edit, since: this.newer?.since ?? performance.now()}
      setTimeout(() => this.tell({type: "heard", edit: content.edit})) // the draft has it
    }
    this.post({type: "hear", content})
  }

  progress(bytes) {
    bar.value = Math.min(bytes, begin.bytes)
    const words = `Loading ${Math.round(begin.bytes / 1e6)} MB, once. Then you can edit.`
    if (element("status").textContent !== words) showStatus(words) // it is spoken: once
  }

  /** Restart a Python that keeps a newer text waiting, or that doesn't finish a text. */
  watch() {
    if (!this.opened) return
    const now = performance.now()
    const patience = Math.max(begin.handover, begin.verdicts * this.first)
    const waits = this.newer && now - this.newer.since > patience
    if (waits && this.text !== this.restarted) {
      this.restarted = this.text // once per text: a long one may itself take longer
      this.start(this.newest.text)
      showStatus("No answer yet: Python restarts …")
    } else if (this.pending && now - this.active > begin.silence) {
      this.giveUp("Checking this kernel took too long.")
    }
  }

  /** Restart Python, which then doesn't check the text that it worked on. */
  giveUp(why) {
    const text = this.newest?.text ?? ""
    this.start(text, "", text)
    showStatus(`${why} Python restarts …`, "failed")
  }

  fail(why, problem) {
    this.host.end() // what it still loads is no news
    if (this.opened && this.newest?.text !== this.crashed) {
      this.crashed = this.newest?.text
      this.giveUp(`Checking this kernel failed (${why}).`)
      return
    }
    bar.hidden = true
    showStatus(explain(why, problem), "failed")
    if (problem !== "network") return
    const again = document.createElement("button")
    Object.assign(again, {type: "button", textContent: "Try again"})
    again.addEventListener("click", () => this.startAgain())
    element("status").append(" ", again)
  }

  /** Load again what didn't arrive. */
  startAgain() {
    this.progress(0)
    bar.hidden = false
    this.start(draft.get(), this.link.text)
  }
}

/** Say why the page can't run Python. */
const explain = (why, problem = "failed") =>
  begin.problems[problem] + (problem === "failed" ? ` (${why})` : "")

/** Share a link that holds the step, the text, and its speed. */
async function share(bench) {
  if (new TextEncoder().encode(bench.text).length > MAX_BYTES) {
    const words = "This kernel is too long for a link: save its text as a file, and share that."
    showStatus(words, "failed")
    return
  }
  const held = new URLSearchParams({text: await pack(bench.text)})
  if (bench.speed && bench.text === bench.newest.text)
    held.set("speed", String(Math.round(bench.speed)))
  const link = `${location.origin}${location.pathname}?step=${page.step}#${held}`
  try {
    await navigator.clipboard.writeText(link)
    showStatus("The link is copied. It holds the whole kernel.")
  } catch {
    showStatus("Copy this link. It holds the whole kernel: ")
    const field = document.createElement("input")
    Object.assign(field, {value: link, readOnly: true, ariaLabel: "Link"})
    element("status").append(field)
    field.select()
  }
}

/** The reader does something, here or around this page: nobody is led away from it. */
function handle({type}) {
  isGoing = false
  const isDone = type === "keydown" || type === "wheel" // what is pressed doesn't move
  if (isDone && ready && element("status").textContent === ready) showStatus("")
}
for (const place of isEmbedded ? [window, parent] : [window])
  for (const hand of HANDS) attempt(() => place.addEventListener(hand, handle, {passive: true}))

/** Send a message to the page around this one. */
const tellPage = (message) => parent.postMessage(message, location.origin)
if (isEmbedded) {
  const tellHeight = () => tellPage({type: "height", height: document.body.scrollHeight})
  new ResizeObserver(tellHeight).observe(document.body)
  element("next").onclick = () => {
    tellPage({type: "next"})
    return false
  }
  for (const hand of HANDS) addEventListener(hand, () => tellPage({type: "hand"}), {passive: true})
}

async function start() {
  if (element("status").dataset.kind === "failed") return // the page has found what is missing
  bar.max = begin.bytes
  const link = await readLink()
  /** @type {any} */
  const store = await openStore().catch(() => ({problem: "no storage"}))
  const bench = new Bench(store, link)
  const saved = store.all?.get(`${page.step}.il`)
  const text = link.text || draft.get() || (saved && new TextDecoder().decode(saved))
  if (text) showKernel(text)
  element("share").addEventListener("click", () => share(bench))
  addEventListener("hashchange", () => isLink() && location.reload())
  bench.start(draft.get(), link.text)
  addEventListener("message", ({data, source, origin}) => {
    const isOurs = source === parent && origin === location.origin
    if (isOurs && data.type === "open") bench.open(data.step, data.next, data.types)
  })
  if (isEmbedded) tellPage({type: "ready"})
  navigator.serviceWorker?.register("offline.js").catch(() => {})
}

start().catch((error) => showStatus(explain(error.message), "failed"))
