// CPython in WebAssembly: with the timing engine and the catalog's compiled kernels in its memory, and
// files in memory. The site's worker runs it.
// @ts-expect-error: the site has it beside this file
import {ConsoleStdout, Directory, File, OpenFile, PreopenDirectory, WASI} from "./shim/index.js"

export const FOLDER = "work" // the reader's files, as in stand_ins.py
const STACK = 1 << 16 // bytes, of a compiled kernel
const ENVIRONMENT = ["TMPDIR=/tmp", "HOME=/home", "IPYTHONDIR=/home/ipython", "NO_COLOR=1"]
const encode = (text) => new TextEncoder().encode(text)
const decode = (bytes) => new TextDecoder().decode(bytes)
// Where WebAssembly may wait for a promise, Python notices between two steps that the reader types.
export const waits = "Suspending" in WebAssembly

/** The folder of launches' results. Those of the site are fetched when Python first looks for them,
 * while it waits. Without a network it computes them. */
class Launches extends Map {
  /** @param {string[]} names of the site's */
  constructor(names) {
    super()
    this.missing = new Set(names)
  }

  get(name) {
    if (this.missing.has(name)) {
      const request = new XMLHttpRequest()
      request.open("GET", new URL(`launches/${name}`, import.meta.url), false)
      request.responseType = "arraybuffer"
      try {
        request.send()
        if (request.status === 200) this.set(name, new File(new Uint8Array(request.response)))
        this.missing.delete(name)
      } catch {}
    }
    return super.get(name)
  }
}

/** Return a tree of folders with these files, [path, text or bytes], and results of launches. */
export function tree(files, launches) {
  const root = new Map()
  folderAt(root, ["home", ".cache"]).set("cypresskit", new Directory(new Launches(launches)))
  for (const name of ["tmp", "home", FOLDER]) folderAt(root, [name])
  for (const [path, data] of files) put(root, path, data)
  return root
}

function folderAt(root, parts) {
  let folder = root
  for (const part of parts) {
    if (!(folder.get(part) instanceof Directory)) folder.set(part, new Directory(new Map()))
    folder = folder.get(part).contents
  }
  return folder
}

function put(root, path, data) {
  const parts = path.split("/")
  const name = parts.pop()
  folderAt(root, parts).set(name, new File(typeof data === "string" ? encode(data) : data))
}

export class Python {
  /**
   * @param {WebAssembly.Module} module CPython
   * @param {WebAssembly.Module} engine
   * @param {Record<string, {head: object, code: string}>} kernels by the hash of their program
   * @param {Map<string, any>} root
   * @param {(kind: string, content: string) => any} respond answers what isn't answered here */
  constructor(module, engine, kernels, root, respond) {
    this.kernels = kernels
    this.root = root
    this.respond = respond
    this.entries = new Map() // compiled kernels
    /** @type {any} */
    this.stack = undefined // which they share
    this.seen = new Map() // the reader's files, as they were last sent or received
    this.folders = new Set()
    /** @type {Promise<any>} */
    this.last = Promise.resolve()
    const say = ConsoleStdout.lineBuffered((line) => console.log(line))
    const beside = [new OpenFile(new File([])), say, say, new PreopenDirectory("/", root)]
    this.wasi = new WASI(["python"], ENVIRONMENT, beside, {debug: false})
    const {poll_oneoff, fd_close} = this.wasi.wasiImport
    this.wasi.wasiImport.fd_close = (file) => {
      const status = fd_close(file)
      respond("closed", "") // a cell may never end
      return status
    }
    this.wasi.wasiImport.poll_oneoff = (at, ...others) => {
      const view = new DataView(this.exports.memory.buffer)
      // The shim reads a clock's flags there, four bytes too early: a sleep that ends at a given time
      // would last as long again as the page has been open.
      view.setUint16(at + 36, view.getUint16(at + 40, true), true)
      return poll_oneoff(at, ...others)
    }
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

  /** Answer a request of Python: see stand_ins.py and cypresskit_native.py. */
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
    const space = request.lastIndexOf(" ")
    const entry = this.engine[request.slice(0, space)]
    if (entry) {
      entry(Number(request.slice(space + 1)))
      return ""
    }
    const [kind, ...words] = request.split(" ")
    if (kind === "head") {
      const known = this.kernels[words[0]]
      return known ? JSON.stringify(known.head) : ""
    }
    if (kind === "kernel") {
      const [key, context, counts, spill, ...batches] = words
      const places = [context, counts, spill].map(Number)
      return String(this.kernel(key)(...places, ...batches.map(BigInt)))
    }
    return this.respond(kind, request.slice(kind.length + 1)) ?? ""
  }

  /** Return the function of a compiled kernel. */
  kernel(key) {
    if (!this.entries.has(key)) {
      const top = (this.exports.host_alloc(STACK) + STACK - 64) & -16
      this.stack ??= new WebAssembly.Global({value: "i32", mutable: true}, top)
      const letters = atob(this.kernels[key].code)
      const code = Uint8Array.from(letters, (letter) => letter.charCodeAt(0))
      const env = {__linear_memory: this.exports.memory, __stack_pointer: this.stack}
      const module = new WebAssembly.Module(code)
      this.entries.set(key, new WebAssembly.Instance(module, {env}).exports.kernel)
    }
    return this.entries.get(key)
  }

  /** Write a file of the reader's that was changed elsewhere. */
  put(name, data) {
    put(this.root, `${FOLDER}/${name}`, data)
    this.seen.set(name, this.files().get(name))
  }

  /** The reader's files: their bytes, by path. */
  files(folder = this.root.get(FOLDER).contents, at = "", found = new Map(), folders = new Set()) {
    for (const [name, entry] of folder)
      if (entry instanceof Directory) {
        folders.add(at + name)
        this.files(entry.contents, `${at}${name}/`, found, folders)
      } else found.set(at + name, entry.data)
    this.found = folders
    return found
  }

  /** What has changed in the reader's files since the last call; undefined for nothing. */
  changes() {
    const found = this.files()
    const changed = [...found].filter(([name, data]) => this.seen.get(name) !== data)
    const removed = [...this.seen.keys()].filter((name) => !found.has(name))
    const folders = [...this.found].filter((name) => !this.folders.has(name))
    this.seen = found
    this.folders = this.found
    if (changed.length || removed.length || folders.length) return {changed, removed, folders}
    return undefined
  }
}
