// The workbench's Python, in a worker: CPython in WebAssembly, the engine in its memory, and the
// reader's files, which the browser keeps.
// @ts-expect-error: the site has it beside this file
import {ConsoleStdout, Directory, File, OpenFile, PreopenDirectory, WASI} from "./shim/index.js"

const FOLDER = "climb" // as in page_python.py
const STORE = "cypresskit-climb"
const STORE_TIMEOUT = 2000 // milliseconds until another tab has the files, or the store can't be opened
const encode = (text) => new TextEncoder().encode(text)
const decode = (bytes) => new TextDecoder().decode(bytes)
// Where WebAssembly may wait for a promise, Python notices between two steps that the reader types.
const waits = "Suspending" in WebAssembly

/** @type {any[]} */
const waiting = []
let arrived = () => {}
let current
let busy = false
let python
let files

/** Fetch a file of the site and unpack it. Report the bytes as they arrive. */
async function fetched(name) {
  const reply = await fetch(name)
  if (!reply.ok || !reply.body) throw new Error(`${name}: ${reply.status}`)
  const count = new TransformStream({
    transform(chunk, to) {
      postMessage({type: "loaded", bytes: chunk.length})
      to.enqueue(chunk)
    },
  })
  return reply.body.pipeThrough(count).pipeThrough(new DecompressionStream("gzip"))
}

const bytesOf = async (name) =>
  new Uint8Array(await new Response(await fetched(name)).arrayBuffer())
const compiled = async (name) =>
  WebAssembly.compileStreaming(
    new Response(await fetched(name), {headers: {"Content-Type": "application/wasm"}}),
  )

/** Put a file into a tree of folders. */
function put(root, path, data) {
  const parts = path.split("/")
  const name = parts.pop()
  let folder = root
  for (const part of parts) {
    if (!folder.has(part)) folder.set(part, new Directory(new Map()))
    folder = folder.get(part).contents
  }
  folder.set(name, new File(data))
}

// -- the browser's store: the files of the climb, for the one tab that has the lock

const done = (request) =>
  new Promise((go, fail) => {
    request.onsuccess = () => go(request.result)
    request.onerror = () => fail(request.error)
  })

/** Open the browser's store. Return all files of the reader, and a function that writes them; or the
 * problem. */
async function store() {
  const isOurs = await new Promise((go) => {
    const signal = AbortSignal.timeout(STORE_TIMEOUT) // a page that was just closed still has it
    const held = () => go(true) ?? new Promise(() => {}) // until this worker ends
    navigator.locks.request(STORE, {signal}, held).catch(() => go(false))
  })
  if (!isOurs) return {problem: "other tab"}
  const late = new Promise((_, fail) => setTimeout(fail, STORE_TIMEOUT))
  return Promise.race([opened(), late]).catch(() => ({problem: "no storage"}))
}

async function opened() {
  const opening = indexedDB.open(STORE, 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore("files")
  const base = await done(opening)
  const files = (mode) => base.transaction("files", mode).objectStore("files")
  const write = async (all) => done(files("readwrite").put(all, "all"))
  return {all: await done(files("readonly").get("all")), write}
}

class Python {
  constructor(module, engine, root) {
    this.folder = root.get(FOLDER).contents
    /** @type {Promise<any>} */
    this.last = Promise.resolve()
    const say = ConsoleStdout.lineBuffered((line) => console.log(line))
    const beside = [new OpenFile(new File([])), say, say, new PreopenDirectory("/", root)]
    const environment = ["TMPDIR=/tmp", "HOME=/home", "CYPRESSKIT_KEEP=0", "NO_COLOR=1"]
    this.wasi = new WASI(["python"], environment, beside, {debug: false})
    const call = (...places) => this.call(...places)
    // @ts-expect-error: newer than TypeScript's list
    const host = {call: waits ? new WebAssembly.Suspending(call) : call}
    const imports = {wasi_snapshot_preview1: this.wasi.wasiImport, host}
    this.instance = new WebAssembly.Instance(module, imports)
    /** @type {any} */
    this.exports = this.instance.exports
    const env = {__linear_memory: this.exports.memory}
    /** @type {any} */
    this.engine = new WebAssembly.Instance(engine, {env}).exports
    // @ts-expect-error: newer than TypeScript's list
    this.turn = waits ? WebAssembly.promising(this.exports.turn) : this.exports.turn
  }

  get memory() {
    return new Uint8Array(this.exports.memory.buffer)
  }

  /** Begin without any import, or with the memory of a Python that has imported the package. */
  begin(memory) {
    if (!memory) return this.wasi.initialize(this.instance)
    this.wasi.inst = this.instance
    this.exports.memory.grow(Math.ceil((memory.length - this.memory.length) / 65536))
    this.memory.set(memory)
  }

  /** Run a Python program, after the earlier ones. */
  run(text) {
    const ran = this.last.then(() => this.runNow(text))
    this.last = ran.catch(() => {})
    return ran
  }

  async runNow(text) {
    const [place, length] = this.lay(encode(text))
    const status = await this.turn(place, length)
    if (status) throw new Error(`Python ended with ${status}: see the console`)
  }

  /** Copy bytes into Python's memory. Return their address and length. */
  lay(bytes) {
    const place = this.exports.host_alloc(bytes.length || 1)
    this.memory.set(bytes, place)
    return [place, bytes.length]
  }

  /** Answer a request of Python: see ask_host in its modules. */
  call(place, length, toPlace, toLength) {
    const request = decode(this.memory.slice(place, place + length))
    const reply = (text) => {
      const [at, size] = this.lay(encode(text))
      const view = new DataView(this.exports.memory.buffer)
      view.setUint32(toPlace, at, true)
      view.setUint32(toLength, size, true)
      return 0
    }
    const answer = this.answer(request)
    return answer instanceof Promise ? answer.then(reply) : reply(answer)
  }

  answer(request) {
    if (!request) return Object.keys(this.engine).join("\n")
    if (request === "message") return JSON.stringify(current)
    const space = request.lastIndexOf(" ")
    const entry = this.engine[request.slice(0, space)]
    if (entry) {
      entry(Number(request.slice(space + 1)))
      return ""
    }
    const [kind] = request.split(" ", 1)
    const rest = request.slice(kind.length + 1)
    if (kind === "waiting") return waits ? newest(Number(rest)) : ""
    postMessage({type: kind, content: kind === "say" ? JSON.parse(rest) : rest})
    return ""
  }

  /** The reader's files, if they have changed since the last call; otherwise undefined. */
  changes() {
    const files = new Map([...this.folder].map(([name, {data}]) => [name, data]))
    const seen = [...files].flat()
    const same = this.seen?.length === seen.length && this.seen.every((one, n) => one === seen[n])
    this.seen = seen
    return same ? undefined : files
  }
}

/** Return what waits, or arrives within some seconds: "text", "other", or "" for nothing. */
async function newest(seconds) {
  save()
  await new Promise((go) => setTimeout(go)) // so that what has been sent is here
  if (!waiting.length && seconds) {
    await new Promise((go) => {
      arrived = () => go(undefined)
      setTimeout(go, seconds * 1000)
    })
    arrived = () => {}
  }
  if (!waiting.length) return ""
  return waiting.some(({content}) => content?.type === "text") ? "text" : "other"
}

/** Start Python: with the memory that an earlier visit saved, or anew. */
async function begin({key, files: before}) {
  files = await store()
  const cache = await self.caches?.open(key).catch(() => undefined)
  const memory = (await cache?.match("memory").catch(() => undefined))?.body
  const root = new Map([["tmp", new Directory(new Map())]])
  const [module, engine, library, source, image] = await Promise.all([
    compiled("python.wasm.gz"),
    compiled("engine.wasm.gz"),
    bytesOf("library.zip.gz"),
    bytesOf("source.json.gz"),
    memory && new Response(memory.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(),
  ])
  put(root, "usr/local/lib/python315.zip", library)
  for (const [name, text] of Object.entries(JSON.parse(decode(source))))
    put(root, `source/${name}`, encode(text))
  root.set(FOLDER, new Directory(new Map()))
  for (const [name, data] of before ?? files.all ?? []) put(root, `${FOLDER}/${name}`, data)

  python = new Python(module, engine, root)
  python.begin(image && new Uint8Array(image))
  postMessage({type: "stage", text: "Python is starting …"})
  if (!image) {
    await python.run("import sys; sys.path.insert(0, '/source'); import page_python")
    if (cache) saveMemory(cache, python.memory.slice())
  }
  python.changes()
  Object.assign(self, {python}) // for the console, and tests
}

/** Save Python's memory for the next visit. */
async function saveMemory(cache, memory) {
  try {
    const packed = new Blob([memory]).stream().pipeThrough(new CompressionStream("gzip"))
    await cache.put("memory", new Response(await new Response(packed).blob()))
  } catch {} // the next visit begins as this one did
}

/** Save the reader's files, if they have changed. */
async function save() {
  const changed = python.changes()
  if (!changed) return
  postMessage({type: "changed", files: changed}) // for the next worker
  if (!files.write) return
  await files.write(changed).then(
    () => postMessage({type: "saved", texts: [...changed.values()].map(decode)}),
    () => {
      files = {problem: "no storage"} // the page keeps what is typed, if it can
    },
  )
}

/** Handle the waiting messages, the oldest first; then finish the job that was interrupted. */
async function work() {
  if (busy) return
  busy = true
  while (waiting.length) {
    current = waiting.shift()
    await python.run("page_python.work()")
    await save()
    if (current.type !== "resume") postMessage({type: "rested", problem: files.problem ?? ""})
    if (!waiting.length && current.type === "hear") waiting.push({type: "resume"})
  }
  busy = false
}

const failed = (error) => postMessage({type: "failed", message: String(error)})
let begun

addEventListener("message", ({data}) => {
  if (data.type === "begin") begun = begin(data)
  else waiting.push(data)
  arrived()
  begun.then(work).catch(failed)
})
