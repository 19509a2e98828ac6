// The workbook's kernel in JupyterLite: a prebuilt extension without a bundler. It starts the site's
// Python (bench/host.js, workbook/kernel_python.py), passes Jupyter's messages, and saves the reader's
// files in JupyterLite's store.
//
// What it uses of JupyterLite and JupyterLab, and nothing else. Their versions are pinned, and
// tests/pages/test_workbook.py notices a change:
// - the container's `init(shares)` and `get()`, and `shares[name][version].get()`
// - of @jupyterlite/services: `BaseKernel` (`location`, `parent`, `executionCount`, `stream`,
//   `displayData`, `updateDisplayData`, `clearOutput`, `publishExecuteResult`, `publishExecuteError`,
//   `handleComm`, the requests that it calls, and `_commInfo`), `IKernelSpecs.register`,
//   and `IKernelClient.interrupt`
// - of the app: `restored`, `shell.restored`, `shell.layoutModified`, `shell.leftCollapsed`, `shell.collapseLeft`,
//   `shell.currentChanged`, `shell.currentWidget.sessionContext` (`ready`, `session.kernel.id`), the command
//   `docmanager:open`, and `serviceManager.contents` (`get`, `save`, `delete`, `fileChanged`)
;(() => {
  const NAME = "cypresskit-kernel"
  const BENCH = new URL("$bench", document.currentScript.src) // the folder bench/
  const LOCK = "cypresskit-workbook"
  const LARGEST = 50_000_000 // bytes of a file that Python gets
  const BEGIN = {key: "$key", module: "kernel_python", packages: ["$packages"], launches: $launches}
  const MEGABYTES = $megabytes
  const PROBLEMS = $problems
  const STOPPED =
    "A cell can't be stopped on this page, so Python was restarted. Your files are kept. What the cells " +
    "above have defined is gone: run them again."
  const OTHER_TAB =
    "The workbook is open in another tab, and its Python runs there: go on there, or close that tab and " +
    "run this cell again. So no tab overwrites the files of another."
  const NO_STORAGE =
    "This browser can't save your files. Download the notebook before you leave: File, Download."
  let shares

  /** Return a module that JupyterLite shares. */
  async function shared(name) {
    const [version] = Object.values(shares[name])
    return (await version.get())()
  }

  /** Whether this tab may run Python: one tab does. */
  let ours

  /** Show a sentence below the notebook, until there is another one. */
  function say(text) {
    let line = document.getElementById(NAME)
    if (!line) {
      line = document.body.appendChild(document.createElement("p"))
      line.id = NAME
      line.setAttribute("role", "status")
      line.style.cssText =
        "position: fixed; right: 16px; bottom: 28px; z-index: 9999; margin: 0; padding: 6px 12px; " +
        "max-width: 40em; border: 1px solid var(--jp-border-color1); border-radius: 4px; " +
        "background: var(--jp-layout-color1); color: var(--jp-ui-font-color1)"
    }
    line.textContent = text
    line.hidden = !text
  }

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))

  const contentOf = ({content, format}) =>
    format === "base64" ? bytesOf(content) : String(content)

  /** Return what the store holds for a file of these bytes. */
  function fileModel(data) {
    try {
      const content = new TextDecoder("utf-8", {fatal: true}).decode(data)
      return {type: "file", format: "text", mimetype: "text/plain", content}
    } catch {
      const letters = Array.from(data, (byte) => String.fromCharCode(byte)).join("")
      const mimetype = "application/octet-stream"
      return {type: "file", format: "base64", mimetype, content: btoa(letters)}
    }
  }

  /** The files of a notebook's folder, in the browser's store, without notebooks. */
  class Files {
    constructor(contents, location) {
      this.contents = contents
      this.folder = location ? `${location.replace(/\/$/, "")}/` : ""
      this.known = new Map() // what Python and the store both have
      this.unsaved = new Map() // what only Python has, by name; undefined for a removed file
      this.last = Promise.resolve() // the last save
    }

    /** Return [name, content] of all. */
    async all(folder = "", found = []) {
      const path = `${this.folder}${folder}`.replace(/\/$/, "")
      const {content} = await this.contents.get(path, {content: true})
      for (const {name, type, size} of content)
        if (type === "directory") await this.all(`${folder}${name}/`, found)
        else if (type === "file" && (size ?? 0) < LARGEST) {
          const data = await this.news(`${folder}${name}`, new Map())
          if (data !== undefined) found.push([`${folder}${name}`, data])
        }
      return found
    }

    /** Return a file's content if it isn't `known`. A Python that begins knows none, whatever a
     * change that was just saved has noted for the one before. */
    async news(name, known = this.known) {
      const {content, format, type} = await this.contents.get(this.folder + name, {content: true})
      if (type !== "file" || known.get(name) === content) return undefined
      this.known.set(name, content)
      return contentOf({content, format})
    }

    /** Save what Python has changed. What can't be saved stays, and is tried again with the next. */
    save({changed, folders, removed}) {
      const {unsaved} = this
      const directory = {type: "directory", format: "json", content: null}
      for (const name of folders) unsaved.set(name, directory)
      for (const [name, data] of changed) unsaved.set(name, fileModel(data))
      for (const name of removed) unsaved.set(name, undefined)
      this.last = this.last.then(() => this.saveAll())
    }

    async saveAll() {
      const {contents, folder, known, unsaved} = this
      const wasFull = this.isFull
      this.isFull = false
      for (const [name, model] of unsaved) {
        try {
          known.set(name, model?.content)
          if (model) await contents.save(folder + name, model)
          else await contents.delete(folder + name).catch(() => {})
          if (unsaved.get(name) === model) unsaved.delete(name)
        } catch {
          this.isFull = true
        }
      }
      if (this.isFull || wasFull) say(this.isFull ? NO_STORAGE : "")
    }
  }

  function kernelClass(BaseKernel, {Host, lock}) {
    return class CypressKernel extends BaseKernel {
      constructor(options, contents) {
        super(options)
        this.files = new Files(contents, this.location)
        this.asked = new Map() // requests that Python hasn't answered
        this.comms = {} // its channels, by id
        this.number = 0
        this.host = new Host(BEGIN, (message) => this.take(message))
      }

      /** Start Python, unless it runs. */
      start() {
        this.begun ??= this.begin()
        this.begun.catch(() => {
          this.begun = undefined // the next request tries again
        })
        return this.begun
      }

      async begin() {
        ours ??= lock(LOCK).catch(() => true)
        if (!(await ours)) {
          ours = undefined
          throw Object.assign(new Error(OTHER_TAB), {name: "OtherTab"})
        }
        await this.files.last
        this.files.known.clear()
        const files = await this.files.all()
        for (const [name, model] of this.files.unsaved) // of a Python before this one
          if (model?.type === "file") files.push([name, contentOf(model)])
        this.isReady = false
        this.host.start(files)
        await new Promise((go, fail) => Object.assign(this, {go, fail}))
        this.isReady = true
        say(this.files.isFull ? NO_STORAGE : "")
      }

      /** End Python, which has failed or was stopped. */
      end(words, name = "KernelDied") {
        const error = Object.assign(new Error(words), {name})
        this.host.end()
        this.begun = undefined
        this.comms = {}
        this.fail?.(error)
        if (!this.asked.size) say(words)
        for (const {fail} of this.asked.values()) fail(error)
        this.asked.clear()
      }

      /** The stop button: WebAssembly can't be interrupted. */
      interrupt() {
        if (!this.asked.size) return
        this.end(STOPPED, "KeyboardInterrupt")
        this.start()
      }

      // Not `begun`: the client waits for it before each message, and kernel_info can be answered at once.
      get ready() {
        return Promise.resolve()
      }

      take(data) {
        const {type, content} = data
        if (type === "publish") this.publish(data)
        else if (type === "reply") {
          this.asked.get(data.id)?.go(content)
          this.asked.delete(data.id)
        } else if (type === "files") this.files.save(data)
        else if (type === "ready") this.go()
        else if (type === "stage") say(data.text)
        else if (type === "loaded")
          say(`Python is loading: ${Math.round(data.bytes / 1e6)} of ${MEGABYTES} MB, once`)
        else if (type === "failed")
          this.end(
            this.isReady
              ? `Python ended (${data.message}). Run the first cell again.`
              : `${PROBLEMS[data.problem]} (${data.message}) Your files are kept. Run a cell to try again.`,
          )
      }

      publish({msg_type, content, metadata, buffers, parent}) {
        if (msg_type === "stream") this.stream(content, parent)
        else if (msg_type === "display_data") this.displayData(content, parent)
        else if (msg_type === "update_display_data") this.updateDisplayData(content, parent)
        else if (msg_type === "clear_output") this.clearOutput(content, parent)
        else if (msg_type === "execute_result") this.publishExecuteResult(content, parent)
        else if (msg_type === "error") this.publishExecuteError(content, parent)
        else {
          const {comm_id, target_name} = content
          if (msg_type === "comm_open") this.comms[comm_id] = {target_name}
          if (msg_type === "comm_close") delete this.comms[comm_id]
          this.handleComm(msg_type, content, metadata, buffers?.map(bytesOf), parent)
        }
      }

      /** A file was changed elsewhere: in JupyterLab's editor, or by another notebook. */
      async changed(path) {
        if (!this.begun || !path.startsWith(this.files.folder) || path.endsWith(".ipynb")) return
        const name = path.slice(this.files.folder.length)
        const data = await this.files.news(name).catch(() => undefined)
        if (data !== undefined) this.host.post({type: "file", name, data})
      }

      /** Send a request to Python; resolve to its reply. */
      async ask(type, content, {buffers = [], wait = true} = {}) {
        const {header} = this.parent
        await this.start()
        const id = this.number++
        const reply = new Promise((go, fail) => this.asked.set(id, {go, fail}))
        reply.catch(() => {})
        this.host.post({type, id, content, buffers, parent: header})
        return wait ? reply : {}
      }

      async kernelInfoRequest() {
        return {
          status: "ok",
          protocol_version: "5.3",
          implementation: NAME,
          implementation_version: "1",
          banner: "cypresskit's Python, in this page",
          help_links: [],
          language_info: {
            name: "python",
            version: "3",
            mimetype: "text/x-python",
            file_extension: ".py",
            codemirror_mode: {name: "ipython", version: 3},
            pygments_lexer: "ipython3",
            nbconvert_exporter: "python",
          },
        }
      }

      async executeRequest(content) {
        const execution_count = this.executionCount
        try {
          return {...(await this.ask("execute", {...content, execution_count})), execution_count}
        } catch (error) {
          const {name: ename, message: evalue} = error
          const problem = {ename, evalue, traceback: [`${ename}: ${evalue}`]}
          this.publishExecuteError(problem)
          return {status: "error", execution_count, ...problem}
        }
      }

      completeRequest(content) {
        return this.ask("complete", content)
      }

      inspectRequest() {
        return {status: "ok", found: false, data: {}, metadata: {}} // `help` tells it
      }

      isCompleteRequest() {
        return {status: "unknown"} // only consoles ask
      }

      commInfoRequest({target_name: wanted}) {
        const kept = Object.entries(this.comms).filter(
          ([, {target_name}]) => !wanted || target_name === wanted,
        )
        return {status: "ok", comms: Object.fromEntries(kept)}
      }

      async _commInfo(msg) {
        return this.commInfoRequest(msg.content)
      }

      // JupyterLab opens a channel of each notebook that it restores, to ask for its widgets. A Python that
      // hasn't begun has none, and needn't begin for that.
      commOpen({content, buffers}) {
        if (this.begun) return this.ask("comm_open", content, {buffers})
        this.handleComm("comm_close", {comm_id: content.comm_id, data: {}})
      }

      // A custom message, such as an edit of the workbench, doesn't wait: so that Python knows of a newer
      // one while it computes. Changes of values do.
      commMsg({content, buffers}) {
        if (!this.begun) return
        return this.ask("comm_msg", content, {buffers, wait: content.data?.method !== "custom"})
      }

      commClose({content, buffers}) {
        return this.ask("comm_close", content, {buffers})
      }

      dispose() {
        if (this.isDisposed) return
        this.host.end()
        super.dispose()
      }
    }
  }

  async function plugin() {
    const {BaseKernel, IKernelClient, IKernelSpecs} = await shared("@jupyterlite/services")
    const Kernel = kernelClass(BaseKernel, await import(new URL("host.js", BENCH).href))
    return {
      id: `${NAME}:plugin`,
      autoStart: true,
      requires: [IKernelSpecs, IKernelClient],
      activate(app, specs, client) {
        const {contents} = app.serviceManager
        const kernels = new Map()
        // JupyterLite opens the lesson of the address, and then restores the layout of the last visit, which
        // may hide that lesson, or close it.
        const path = new URLSearchParams(location.search).get("path")
        const opened = app.restored.then(open).catch(() => {})
        async function open() {
          const {shell} = app
          const lesson = path && (await app.commands.execute("docmanager:open", {path}))
          await new Promise((go) => {
            const look = () => (!lesson || shell.currentWidget === lesson) && go(undefined)
            shell.currentChanged.connect(look)
            look()
          })
        }
        /** Begin the Python of the notebook in view. */
        async function beginInView() {
          const seen = app.shell.currentWidget?.sessionContext
          await seen?.ready
          if (seen === app.shell.currentWidget?.sessionContext)
            kernels.get(seen?.session?.kernel?.id)?.start()
        }
        // More room for pictures: JupyterLab opens its file list at a first visit, some time after it starts.
        let isUntouched = true
        const close = () => isUntouched && !app.shell.leftCollapsed && app.shell.collapseLeft()
        for (const event of ["pointerdown", "keydown"]) {
          addEventListener(event, () => (isUntouched = false), {capture: true, once: true})
        }
        app.shell.layoutModified.connect(close)
        app.shell.restored.then(close)
        contents.fileChanged.connect((_, {type, newValue}) => {
          if (type === "delete" || !newValue?.path) return
          for (const kernel of kernels.values()) kernel.changed(newValue.path)
        })
        specs.register({
          spec: {
            name: "python3",
            display_name: "Python (in this page)",
            language: "python",
            argv: [],
            resources: {},
          },
          async create(options) {
            const kernel = new Kernel(options, contents)
            kernels.set(options.id, kernel)
            kernel.disposed.connect(() => kernels.delete(options.id))
            // Of the notebook in view Python begins at once; of other open ones with their first cell.
            opened.then(beginInView)
            return kernel
          },
        })
        const cancel = client.interrupt.bind(client)
        client.interrupt = async (id) => {
          await cancel(id) // the cells that wait
          kernels.get(id)?.interrupt()
        }
        Object.assign(window, {cypresskitKernels: kernels, cypresskitApp: app}) // for tests
      },
    }
  }

  const container = {
    init(scope) {
      shares = scope
    },
    async get() {
      const made = await plugin()
      return () => ({__esModule: true, default: made})
    },
  }
  window._JUPYTERLAB = Object.assign(window._JUPYTERLAB ?? {}, {[NAME]: container})
})()
