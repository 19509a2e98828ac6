// The compile page's worker: Python in the browser, which answers the workbench.
//
// Answers are texts of JSON. A text is answered part by part. Between two parts the worker hears what came meanwhile, and
// leaves the rest out once there is a newer text.
// @ts-expect-error: the site has it beside this file
import {loadPyodide} from "./pyodide.mjs"

// What is imported is in the snapshot: the standard library need not come.
const EMPTY_ZIP = `data:application/zip;base64,${btoa(`PK\x05\x06${"\0".repeat(18)}`)}`
/** @type {Record<string, any>[]} */
const waiting = []
let busy = false
let session

const pause = () => new Promise((go) => setTimeout(go))
const isNewer = () => waiting.some(({type}) => type === "text" || type === "open")

/** Bring Python up: its memory is as it was when the site was built, all modules imported. */
async function begin() {
  const here = new URL("./", import.meta.url).href
  const python = await loadPyodide({
    indexURL: here,
    stdLibURL: EMPTY_ZIP,
    _loadSnapshot: snapshot(new URL("snapshot.gz", here)),
  })
  session = python.globals.get("sys").modules.get("answering").Session()
}

/** What snapshot.mjs wrote.
 * @param {URL} address */
async function snapshot(address) {
  const reply = await fetch(address)
  if (!reply.ok || !reply.body) throw new Error(`${address.pathname}: ${reply.status}`)
  const unpacked = reply.body.pipeThrough(new DecompressionStream("gzip"))
  return new Uint8Array(await new Response(unpacked).arrayBuffer())
}

/** Answer what waits, the oldest first. */
async function work() {
  if (busy || !session) return
  busy = true
  while (waiting.length) {
    const message = waiting.shift()
    if (message.type === "text" && isNewer()) continue
    const answers = session.receive(JSON.stringify(message))
    for (const answer of answers) {
      postMessage(answer)
      await pause()
      if (isNewer()) break
    }
    answers.destroy()
  }
  busy = false
}

addEventListener("message", ({data}) => {
  waiting.push(data)
  work()
})

begin().then(
  () => {
    postMessage({type: "ready"})
    work()
  },
  (error) => postMessage({type: "failed", message: String(error)}),
)
