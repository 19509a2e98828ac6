// A worker with the site's Python, as a page holds it. The workbench (page.js) holds one, which the site's first page
// shows in a frame, and JupyterLite's kernel another (workbook/extension.js). Where they keep the reader's files, and
// when Python begins anew, is theirs.

const LOCK_TIMEOUT = 2000 // milliseconds: a page that was just closed still has it

/** Whether this tab may change the reader's files, until it is closed: one tab may. */
export const lock = (name) =>
  new Promise((go, fail) => {
    const held = () => go(true) ?? new Promise(() => {}) // until this page ends
    const refused = (error) => (error.name === "TimeoutError" ? go(false) : fail(error))
    const signal = AbortSignal.timeout(LOCK_TIMEOUT)
    navigator.locks.request(name, {signal}, held).catch(refused)
  })

export class Host {
  /** @param {{key: string, module: string, packages?: string[], launches: string[]}} begin see worker.js
   * @param {(message: any) => void} hear takes what Python and its worker say */
  constructor(begin, hear) {
    this.begin = begin
    this.hear = hear
  }

  /** Begin with the reader's files, [name, data], in the place of a Python that runs. */
  start(files) {
    this.end()
    this.worker = new Worker(new URL("worker.js", import.meta.url), {type: "module"})
    this.worker.onmessage = ({data}) => this.hear(data)
    this.worker.onerror = ({message}) => {
      const isLost = !message && !navigator.onLine
      const problem = isLost ? "network" : "failed"
      this.hear({type: "failed", message: message || "its worker can't start", problem})
    }
    this.post({type: "begin", ...this.begin, files})
  }

  post(message) {
    this.worker?.postMessage(message)
  }

  end() {
    this.worker?.terminate()
    this.worker = undefined
  }
}
