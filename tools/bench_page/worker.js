// The worker of the site's Python: begins it, passes messages between it and a page, and reports the
// files that it has changed, which the page saves. Messages of a page: "begin", "file", and what Python's
// own module handles.
import {Python, tree, waits} from "./python.js"

const HERE = new URL(".", import.meta.url)
const decode = (bytes) => new TextDecoder().decode(bytes)

/** @type {any[]} */
const waiting = []
let arrived = () => {}
let current
let busy = false
let module // the name of Python's own module
/** @type {any} */
let python

let loaded = 0 // bytes
let isLost = false // a file: the network or the server is gone
/** @type {(error: unknown) => never} */
const lose = (error) => {
  isLost = true
  throw error
}

/** Fetch a file of the site and unpack it, unless the browser has: some servers say that it is
 * packed. Report the bytes as they arrive. */
async function fetched(name) {
  const reply = await fetch(new URL(name, HERE)).catch(lose)
  if (!reply.ok || !reply.body) return lose(new Error(`${name}: ${reply.status}`))
  const reader = reply.body.getReader()
  const read = () => reader.read().catch(lose)
  let part = await read()
  const isPacked = part.value?.[0] === 0x1f && part.value[1] === 0x8b
  const body = new ReadableStream({
    async pull(to) {
      if (part.done) return to.close()
      loaded += part.value.length
      postMessage({type: "loaded", bytes: loaded})
      to.enqueue(part.value)
      part = await read()
    },
  })
  return isPacked ? body.pipeThrough(new DecompressionStream("gzip")) : body
}

const bytesOf = async (name) =>
  new Uint8Array(await new Response(await fetched(name)).arrayBuffer())
const textsOf = async (name) => JSON.parse(decode(await bytesOf(name)))
const compiled = async (name) =>
  WebAssembly.compileStreaming(
    new Response(await fetched(name), {headers: {"Content-Type": "application/wasm"}}),
  )

/** Return "1" if a message waits, or arrives within some seconds; "" if none does. */
async function hasMessage(seconds) {
  report()
  await new Promise((go) => setTimeout(go)) // so that what has been sent is here
  if (!waiting.length && seconds) {
    await new Promise((go) => {
      arrived = () => go(undefined)
      setTimeout(go, seconds * 1000)
    })
    arrived = () => {}
  }
  return waiting.length ? "1" : ""
}

/** Answer a request of Python's own module. */
function respond(kind, content) {
  if (kind === "message") return JSON.stringify(current)
  if (kind === "closed") return current && report() // not while Python begins
  if (kind === "waiting") return waits ? hasMessage(Number(content)) : ""
  if (kind === "post") {
    report()
    postMessage(JSON.parse(content))
  } else postMessage({type: kind, content})
}

/** Start Python: with the memory that an earlier visit saved, or anew. */
async function begin({key, module: name, packages = [], launches = [], files}) {
  module = name
  const saved = `memory of ${module}`
  const cache = await self.caches?.open(key).catch(() => undefined)
  const memory = (await cache?.match(saved).catch(() => undefined))?.body
  const [wasm, engine, library, kernels, image, ...sources] = await Promise.all([
    compiled("python.wasm.gz"),
    compiled("engine.wasm.gz"),
    bytesOf("library.zip.gz"),
    textsOf("kernels.json.gz"),
    memory && new Response(memory.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(),
    ...["source.json.gz", ...packages].map(textsOf),
  ])
  const texts = sources.flatMap(Object.entries).map(([path, text]) => [`source/${path}`, text])
  const root = tree([["usr/local/lib/python315.zip", library], ...texts], launches)
  python = new Python(wasm, engine, kernels, root, respond)
  for (const [path, data] of files) python.put(path, data)
  python.begin(image && new Uint8Array(image))
  postMessage({type: "stage", text: "Python is starting …"})
  if (!image) {
    await python.run(`import sys; sys.path.insert(0, "/source"); import ${module}`)
    if (cache) saveMemory(cache, key, saved, python.memory.slice())
  }
  python.changes()
  Object.assign(self, {python}) // for the console, and tests
  postMessage({type: "ready"})
}

/** Save Python's memory for the next visit, in place of that of an older site. */
async function saveMemory(cache, key, name, memory) {
  try {
    const kind = key.slice(0, key.lastIndexOf("-") + 1)
    for (const old of await caches.keys())
      if (old.startsWith(kind) && old !== key) await caches.delete(old)
    const packed = new Blob([memory]).stream().pipeThrough(new CompressionStream("gzip"))
    await cache.put(name, new Response(await new Response(packed).blob()))
  } catch {} // the next visit begins as this one did
}

/** Tell the page which of the reader's files have changed. */
function report() {
  const changes = python.changes()
  if (changes) postMessage({type: "files", ...changes})
}

/** Handle the waiting messages, the oldest first; then continue the job that was interrupted. */
async function work() {
  if (busy) return
  busy = true
  while (waiting.length) {
    current = waiting.shift()
    if (current.type === "file") python.put(current.name, current.data)
    else await python.run(`__import__("${module}").work()`) // a notebook has its own __main__
    report()
    if (current.type === "resume") continue
    if (current.type !== "file") postMessage({type: "rested"})
    if (!waiting.length) waiting.push({type: "resume"})
  }
  busy = false
}

/** Tell the page of an error, and which of its problems that is. */
function fail(error) {
  const isForbidden = /Content.Security.Policy|unsafe-eval/i.test(error)
  const problem = isLost ? "network" : isForbidden ? "policy" : "failed"
  postMessage({type: "failed", message: String(error), problem})
}

let begun

addEventListener("message", ({data}) => {
  if (data.type === "begin") begun = begin(data)
  else waiting.push(data)
  arrived()
  begun.then(work).catch(fail)
})
