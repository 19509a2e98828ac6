// The compile page: the workbench with a worker for its answers, and an address that holds the
// kernel. After the "#" stand the kernel of the catalogue in whose place it is launched and, of a
// text that was changed, the text, deflated, in base64url: #like=sgemm_tn&text=...
import {beginWorkbench} from "./editing/workbench.js"

const SETTLED = 400 // milliseconds without a key before the address follows
const LONGEST = 200_000 // characters of a kernel in an address
const element = (id) => document.getElementById(id)
const status = element("status")

/** @param {string} text */
function tell(text, kind = "") {
  status.textContent = text
  status.dataset.kind = kind
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

/** The kernel that the address holds: what it stands for, and its text. */
async function addressed(kernels) {
  const asked = new URLSearchParams(location.hash.slice(1))
  const like = asked.get("like") ?? ""
  const found = Object.hasOwn(kernels, like) ? like : "sgemm_tn"
  const packed = asked.get("text")
  if (!packed) return {like: found, text: kernels[found].text}
  try {
    return {like: found, text: await unpack(packed)}
  } catch {
    tell("The address holds no kernel that can be read: here is another.", "failed")
    return {like: found, text: kernels[found].text}
  }
}

/** The page's side of the workbench's protocol: see cypresskit/editing/protocol.py. */
class Channel {
  constructor(begin) {
    this.begin = begin
    this.listeners = new Set()
    this.worker = new Worker("worker.js", {type: "module"})
    this.worker.onmessage = ({data}) =>
      typeof data === "string" ? this.say(JSON.parse(data)) : this.hear(data)
    this.worker.onerror = () => this.hear({type: "failed", message: "the worker can't start"})
  }

  /** Begin with a kernel. */
  open({like, text}) {
    this.like = like
    this.text = text
    this.own = this.begin.kernels[like].text
    this.worker.postMessage({type: "open", like, own: this.begin.kernels[like]})
  }

  send(message) {
    if (message.type === "hello") queueMicrotask(() => this.say(this.state()))
    if (message.type === "shown")
      this.worker.postMessage({type: "text", edit: message.edit, text: this.text})
    if (message.type !== "text") return
    this.text = message.text
    this.worker.postMessage(message)
    queueMicrotask(() => this.say({type: "heard", edit: message.edit, saved: true}))
    clearTimeout(this.soon)
    this.soon = setTimeout(() => this.aim(), SETTLED)
  }

  listen(hear) {
    this.listeners.add(hear)
    return () => this.listeners.delete(hear)
  }

  say(message) {
    for (const hear of this.listeners) hear(message)
  }

  /** The worker is up, or can't be. */
  hear({type, message}) {
    if (type === "ready") {
      if (!status.dataset.kind) tell("Compiled in your browser, as you type.")
    } else tell(`The compiler can't run here: ${message}`, "failed")
  }

  state() {
    const {words} = this.begin
    const {like, text} = this
    const parts = ["text", "code"]
    const named = {name: `${like}.il`, edit: "page-0"}
    return {type: "state", ...named, text, words, parts, history: []}
  }

  /** Let the address hold the kernel. */
  async aim() {
    const {like, text} = this
    const packed = text === this.own ? "" : `&text=${await pack(text)}`
    if (text === this.text) history.replaceState(null, "", `#like=${like}${packed}`)
  }
}

function save(name, text) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([text], {type: "text/plain"}))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

async function start() {
  const reply = await fetch("begin.json")
  const begin = await reply.json()
  const choice = /** @type {HTMLSelectElement} */ (element("kernels"))
  for (const [name, {teaches}] of Object.entries(begin.kernels))
    choice.add(new Option(`${name}: ${teaches}`, name))

  const channel = new Channel(begin)
  const bench = element("bench")
  let end = () => {}
  const open = (kernel) => {
    end()
    bench.replaceChildren()
    choice.value = kernel.like
    channel.open(kernel)
    end = beginWorkbench(bench.appendChild(document.createElement("div")), channel)
  }
  const visit = async () => open(await addressed(begin.kernels))
  choice.addEventListener("change", () => {
    open({like: choice.value, text: begin.kernels[choice.value].text})
    channel.aim()
  })
  addEventListener("hashchange", visit)
  element("link").addEventListener("click", async () => {
    await channel.aim()
    try {
      await navigator.clipboard.writeText(location.href)
      tell("The link is copied. It holds the whole kernel.")
    } catch {
      tell("The address of this page is the link: copy it. It holds the whole kernel.")
    }
  })
  element("file").addEventListener("click", () => save(`${channel.like}.il`, channel.text))
  await visit()
  navigator.serviceWorker?.register("offline.js").catch(() => {})
}

start().catch((error) => tell(`This page can't begin: ${error.message}`, "failed"))
