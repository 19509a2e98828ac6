// The compile page's worker: Python in the browser, which answers the workbench.
//
// Answers are texts of JSON. A text is answered part by part. Between two parts the worker hears what came meanwhile, and
// leaves the rest out once there is a newer text.
// @ts-expect-error: the site has it beside this file
import {loadPyodide} from "./pyodide.mjs"

/** @type {Record<string, any>[]} */
const waiting = []
let busy = false
let session

const pause = () => new Promise((go) => setTimeout(go))
const isNewer = () => waiting.some(({type}) => type === "text" || type === "open")

/** Bring Python up. */
async function begin() {
  const here = new URL("./", import.meta.url).href
  const [python, packed] = await Promise.all([
    loadPyodide({indexURL: here}),
    fetch(new URL("cypresskit.zip", here)).then((reply) => reply.arrayBuffer()),
  ])
  python.unpackArchive(packed, "zip", {extractDir: "/page"})
  python.runPython("import sys; sys.path.insert(0, '/page'); import answering")
  session = python.globals.get("sys").modules.get("answering").Session()
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
