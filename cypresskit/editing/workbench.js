// The workbench: an editor, and what each edit became. It knows no compiler: it sends texts over a
// channel and shows the answers that come back; see protocol.py.
import {followTheme, listenKeys, make} from "../draw/shell.js"
import {BundleTable} from "./bundle_table.js"
import {Editor, namesFor} from "./editor.js"
import {Figures} from "./figures.js"
import {History} from "./history.js"
import {Words} from "./il_text.js"
import {Legend} from "./legend.js"

const PAUSE = 60 // milliseconds without a key before a text is sent
const SILENCE = 900 // milliseconds after which nobody has heard a text
const SPOKEN = 900 // milliseconds of quiet before a screen reader hears a fault
const UNSENT = "cypresskit-unsaved:"
const UNHEARD = "Nobody answers: the kernel is busy with another cell, or gone. Your text is kept."
const RESTARTED =
  "The kernel was restarted: run this cell again. Your text is kept on this page until then."
const MOST_SET = 8 // lines that set a register that are named
const MOST_FAULTS = 50 // that are listed
// What the page says of a text, each renewed by a part of its answer.
const STATEMENTS = [
  "headline",
  "findings",
  "live",
  "code",
  "product",
  "terms",
  "clocks",
  "best",
  "prices",
]

/** Begin a workbench in an element.
 * @param {HTMLElement} host
 * @param {{send: (message: object) => void, listen: (hear: (message: any) => void) => () => void}}
 *   channel
 * @returns {() => void} ends it */
export function beginWorkbench(host, channel) {
  const bench = new Workbench(host, channel)
  return () => bench.end()
}

/** Which statements are of a text before this one. A statement's element is of the class
 * `ckw-of-NAME`; the host's attribute `data-stale` has the names of those that are stale. */
class Freshness {
  constructor(host) {
    this.host = host
    this.stale = new Set()
  }

  /** Another text: all that stands here is of the one before. */
  age() {
    this.stale = new Set(STATEMENTS)
    this.show()
  }

  /** These are of this text. */
  renew(...names) {
    for (const name of names) this.stale.delete(name)
    this.show()
  }

  show() {
    this.host.dataset.stale = [...this.stale].join(" ")
  }
}

class Workbench {
  constructor(host, channel) {
    this.host = host
    this.channel = channel
    this.view = Math.random().toString(36).slice(2, 8)
    this.count = 0
    this.live = []
    this.faults = []
    this.fresh = new Freshness(host)
    host.classList.add("cypresskit", "ckw")
    this.stopTheme = followTheme(host)
    this.stopKeys = listenKeys(host, {})
    this.waiting = make(host, "p", {class: "ckw-waiting"}, "The workbench opens …")
    this.stopChannel = channel.listen((message) => this.hear(message))
    channel.send({type: "hello"})
  }

  end() {
    clearTimeout(this.soon)
    clearTimeout(this.silence)
    clearTimeout(this.speaking)
    this.stopChannel()
    this.stopTheme()
    this.stopKeys()
    this.editor?.end()
  }

  hear(message) {
    if (message.type === "state") return this.begin(message)
    if (!this.editor) return
    const ours = message.edit === this.edit
    const current = ours && this.editor.text === this.sent
    if (message.type === "answer" && current) this.answer(message)
    else if (message.type === "heard" && ours) this.heard(message)
    else if (message.type === "working" && current) this.works(message.part)
    else if (message.type === "done" && current) this.rest()
    else if (message.type === "text") this.takeOver(message)
    else if (message.type === "saved") this.heard({saved: true})
    else if (message.type === "history") this.history.show(message.entries)
    else if (message.type === "comparison") this.history.compare(message)
    else if (message.type === "trouble") this.say(message.message, true)
    else if (message.type === "gone") this.lose()
  }

  // -- the parts of the page

  begin(state) {
    if (this.editor) return this.resume(state)
    this.waiting.remove()
    this.state = state
    this.words = new Words(state.words)
    const {host} = this
    host.setAttribute("role", "group")
    host.setAttribute("aria-label", `Workbench: ${state.name}`)
    const head = make(host, "div", {class: "ckw-head"})
    this.verdictLine = make(head, "p", {class: "ckw-verdict ckw-of-headline"})
    this.speed = make(head, "p", {class: "ckw-speed ckw-of-clocks"})
    this.unsaved = make(host, "p", {class: "ckw-unsaved", role: "alert", hidden: ""})
    this.offer = make(host, "p", {class: "ckw-unsaved", role: "alert", hidden: ""})
    const main = make(host, "div", {class: "ckw-main"})
    const left = make(main, "div", {class: "ckw-left"})
    this.editor = new Editor(left, {
      label: `IL of ${state.name}. Escape, then Tab, leaves the editor.`,
      changed: () => this.changed(),
      moved: (line) => this.moved(line),
      meaning: (word, line) => this.meaning(word, line),
      names: (line) => namesFor(this.editor.text, this.liveAt(line)),
      words: this.words,
    })
    const foot = make(left, "div", {class: "ckw-foot"})
    this.help = make(foot, "p", {class: "ckw-help"})
    new Legend(foot, left, state.parts)
    const middle = make(main, "div", {class: "ckw-middle ckw-of-code"})
    this.bundles = new BundleTable(middle, {
      picked: (lines) => {
        this.editor.lines.light(lines)
        this.editor.lines.show([...lines][0])
        this.bundles.light(lines)
      },
      goTo: (line) => this.editor.goTo(line),
    })
    this.findings = make(host, "div", {class: "ckw-findings ckw-of-findings"})
    this.figures = new Figures(make(main, "div", {class: "ckw-right"}), {
      parts: state.parts,
      goTo: (line, column) => this.editor.goTo(line, column),
      light: (lines) => this.light(lines),
      ask: (question) => {
        this.asked = true
        this.post({...question, edit: this.edit})
      },
      below: make(host, "div"),
    })
    this.history = new History(make(host, "div", {class: "ckw-history"}), {
      recall: (entry) => this.post({type: "recall", entry}),
      compare: (first, second) => this.post({type: "compare", first, second}),
    })
    this.spoken = make(host, "p", {class: "ckw-heard", "aria-live": "polite"})
    this.editor.begin(state.text)
    this.history.show(state.history)
    this.known = state.text
    this.showUnsaved(state.problem ?? "")
    this.restore()
    this.send()
  }

  /** The kernel was started anew, or the widget was made again: what is here goes on. */
  resume(state) {
    this.history.show(state.history)
    if (state.text !== this.known && state.text !== this.editor.text)
      this.takeOver({...state, why: "file"})
    else this.send()
  }

  /** Bring back a text that nobody had heard when the page was left; or offer it, if the file has
   * changed since. */
  restore() {
    const kept = this.kept()
    if (!kept || kept.text === kept.base || kept.text === this.state.text) return
    if (kept.base === this.state.text) {
      this.editor.take(kept.text)
      this.say("Your last edit, which had not reached the file, is back.", true)
      return
    }
    this.offer.hidden = false
    make(this.offer, "span", {}, "An edit of yours never reached the file, which changed since. ")
    const back = make(this.offer, "button", {type: "button"}, "bring it back")
    const drop = make(this.offer, "button", {type: "button"}, "drop it")
    back.addEventListener("click", () => {
      this.offer.hidden = true
      this.editor.take(kept.text)
      this.editor.area.focus()
    })
    drop.addEventListener("click", () => {
      this.offer.hidden = true
      this.editor.area.focus()
    })
  }

  get keptAt() {
    return UNSENT + (this.state.file ?? this.state.name)
  }

  /** What this page kept of an edit: the text, and what was in the file then. */
  kept() {
    try {
      const {base, text} = JSON.parse(localStorage.getItem(this.keptAt))
      return typeof base === "string" && typeof text === "string" ? {base, text} : undefined
    } catch {
      return undefined // nothing is stored there, or nothing of ours
    }
  }

  keep(text) {
    try {
      if (text === undefined) localStorage.removeItem(this.keptAt)
      else localStorage.setItem(this.keptAt, JSON.stringify({base: this.known, text}))
    } catch {
      // A page that may keep nothing.
    }
  }

  // -- texts

  changed() {
    this.keep(this.editor.text)
    this.age()
    clearTimeout(this.soon)
    this.soon = setTimeout(() => this.send(), PAUSE)
  }

  /** The text is another: what was said is of the one before. */
  age() {
    this.fresh.age()
    this.faults = []
    this.live = []
    this.editor.ageFaults()
    this.figures.works("")
    clearTimeout(this.speaking)
    this.spoken.textContent = ""
    this.note("")
  }

  send() {
    clearTimeout(this.soon)
    clearTimeout(this.silence)
    const {text} = this.editor
    this.edit = `${this.view}-${++this.count}`
    this.sent = text
    if (!this.post({type: "text", edit: this.edit, text})) return
    this.host.setAttribute("aria-busy", "true")
    this.silence = setTimeout(() => {
      this.note(UNHEARD)
    }, SILENCE)
  }

  /** Say something to whoever answers. Returns whether there still is anybody. */
  post(message) {
    try {
      this.channel.send(message)
    } catch {
      this.lose()
      return false
    }
    return true
  }

  /** Nobody hears this page any more: the kernel that it spoke with is gone. */
  lose() {
    clearTimeout(this.silence)
    this.host.removeAttribute("aria-busy")
    this.figures.works("")
    if (this.help.textContent === UNHEARD) this.note("")
    this.showUnsaved(RESTARTED)
  }

  heard({saved, problem = ""}) {
    clearTimeout(this.silence)
    if (this.help.textContent === UNHEARD) this.note("")
    this.showUnsaved(problem)
    if (!saved) return
    this.known = this.sent
    this.keep(undefined)
  }

  /** Why the text isn't in the file, as long as it isn't. */
  showUnsaved(problem) {
    if (this.unsaved.textContent !== problem) this.unsaved.textContent = problem
    this.unsaved.hidden = !problem
  }

  takeOver({text, why, edit}) {
    if (why === "page") return this.follow(text, edit)
    this.known = text
    if (text === this.editor.text) return
    this.editor.take(text)
    this.say(
      why === "file"
        ? "The file was changed outside; undo brings your text back."
        : "The earlier text is back; undo brings the other back.",
      true,
    )
    this.send()
  }

  /** Show what another page of the same workbench has. */
  follow(text, edit) {
    if (edit.startsWith(`${this.view}-`)) return
    clearTimeout(this.soon)
    this.edit = edit
    this.known = text
    this.sent = text
    if (text !== this.editor.text) this.editor.take(text)
    this.age()
    clearTimeout(this.soon)
    this.post({type: "shown", edit})
  }

  // -- answers

  works(part) {
    this.figures.works(part)
  }

  answer(answer) {
    const show = {
      text: () => this.showText(answer),
      code: () => this.showCode(answer),
      verdict: () => this.showVerdict(answer),
      clocks: () => this.showClocks(answer),
      best: () => this.showBest(answer),
      prices: () => this.showPrices(answer),
      replay: () => this.showReplay(answer),
    }[answer.part]
    show?.()
    const last = this.state.parts.at(-1)
    if (answer.part === last || answer.refusal) this.rest()
  }

  /** All that was going to come for this text is here. */
  rest() {
    this.figures.works("")
    this.host.removeAttribute("aria-busy")
  }

  showText({faults, live}) {
    this.faults = faults
    this.editor.paintFaults(faults)
    if (!faults.length) {
      this.live = live
      this.editor.lines.setLive(live)
      this.fresh.renew("live")
      this.moved(this.editor.caret.line)
      return
    }
    const [first] = faults
    this.headline("fault", `Line ${first.line}: ${first.message}`)
    this.list(faults)
    this.moved(this.editor.caret.line)
    this.rest()
    this.speak(`Line ${first.line}, column ${first.column}: ${first.message}`)
  }

  showCode(answer) {
    if (answer.refusal) {
      const {line, message} = answer.refusal
      this.headline("fault", message.split("\n").at(-1).trim())
      this.list([{line, column: 1, length: 1, message}])
      this.speak(message)
      return
    }
    this.list([])
    this.bundles.show(answer)
    this.editor.lines.setColours(this.bundles.colours)
    this.figures.card(answer.card)
    this.fresh.renew("code")
    if (!this.opened) this.open(answer.rows)
    if (!this.state.parts.includes("verdict")) {
      const {loop_bundles: bundles, gprs} = answer.card
      const text = `It assembles: ${bundles} bundles in the loop, ${gprs} registers.`
      this.headline("plain", text)
      this.speak(text)
    }
  }

  /** Begin where it matters: at the first line of the main loop. */
  open(rows) {
    this.opened = true
    const lines = rows.filter(({loop}) => loop).flatMap(({parts}) => parts.map((part) => part[2]))
    if (lines.length && this.editor.caret.line === 1)
      this.editor.lines.toTop(Math.min(...lines) - 2)
  }

  showVerdict(answer) {
    this.judged = answer
    this.list(answer.findings)
    this.editor.paintFaults(answer.findings.filter(({line}) => line))
    this.headline(answer.right ? "right" : "wrong", answer.message)
    this.figures.verdict(answer)
    this.fresh.renew("product", "terms")
    this.speak(answer.message)
  }

  /** The result. Only a right kernel has gained or lost something. */
  showClocks(answer) {
    this.speed.replaceChildren()
    this.figures.clocks(answer)
    this.fresh.renew("clocks")
    if (answer.problem) return
    const {gflops, size, bound} = answer
    const right = Boolean(this.judged?.right)
    make(this.speed, "b", {}, Math.round(gflops).toLocaleString("en"))
    const where = answer.at ?? `N = ${size[0].toLocaleString("en")}`
    make(this.speed, "span", {}, right ? ` Gflop/s at ${where}` : ` Gflop/s of a wrong C, ${where}`)
    this.speed.classList.toggle("ckw-idle", !right)
    const change = Math.round(gflops) - Math.round(this.gflops ?? gflops)
    if (change && right)
      make(
        this.speed,
        "span",
        {class: change > 0 ? "ckw-more" : "ckw-less"},
        ` ${change > 0 ? "+" : "−"}${Math.abs(change).toLocaleString("en")}`,
      )
    if (right) this.gflops = gflops
    const speed = `${Math.round(gflops)} gigaflops at ${where}, bound by ${bound}.`
    this.speak(`${this.judged?.message ?? ""} ${speed}`)
  }

  showBest(answer) {
    this.figures.best(answer)
    this.fresh.renew("best")
  }

  showPrices(answer) {
    this.editor.lines.setPrices(answer.lines)
    this.figures.prices(answer)
    this.fresh.renew("prices")
  }

  /** The terms of a wrong element. Of the first, its fault is the picture's sentence. */
  showReplay(answer) {
    this.figures.replay(answer)
    const {notes = [], terms = []} = answer
    const first = terms.find(({right}) => !right)
    this.lightTerms(terms)
    if (notes.length && this.judged?.product) {
      const sentence = notes[0].split(/(?<=\.) /)[0]
      this.headline("wrong", sentence)
      if (first?.line) {
        const text = this.editor.line(first.line)
        const column = text.length - text.trimStart().length + 1
        const fault = {line: first.line, column, length: text.trim().length, message: sentence}
        const others = this.judged.findings.filter(({kind}) => kind !== "answer")
        this.editor.paintFaults([fault])
        this.list([{...fault, message: notes[0]}, ...others])
      }
    }
    this.speak([answer.problem ?? answer.message, ...notes].join(" "))
  }

  /** Light up lines, and what became of them. */
  light(lines) {
    this.editor.lines.light(lines)
    this.bundles.light(lines, true)
  }

  /** Light up the lines that spoiled an element, and what became of them. */
  lightTerms(terms) {
    const lines = new Set(terms.flatMap(({right, line}) => (right || !line ? [] : [line])))
    if (!lines.size) return
    this.light(lines)
    if (this.asked) this.editor.lines.show(Math.min(...lines))
    this.asked = false
  }

  /** The first sentence of the picture. */
  headline(kind, text) {
    this.verdictLine.dataset.kind = kind
    this.verdictLine.textContent = text
    this.verdictLine.title = text
    this.fresh.renew("headline")
  }

  /** The list of faults or findings, each with a button to its line. */
  list(faults) {
    this.findings.replaceChildren()
    this.fresh.renew("findings")
    for (const fault of faults.slice(0, MOST_FAULTS)) {
      const item = make(this.findings, "p")
      if (fault.line) {
        const button = make(item, "button", {type: "button"}, `line ${fault.line}`)
        button.addEventListener("click", () => this.editor.goTo(fault.line, fault.column))
      }
      make(item, "span", {}, ` ${fault.message}`)
      if (fault.advice) make(item, "span", {class: "ckw-advice"}, ` ${fault.advice}`)
    }
    const more = faults.length - MOST_FAULTS
    if (more > 0) make(this.findings, "p", {}, `And ${more.toLocaleString("en")} more.`)
  }

  note(text) {
    this.help.classList.toggle("ckw-note", Boolean(text))
    if (text) this.help.textContent = text
    else this.moved(this.editor.caret.line)
  }

  /** Let a screen reader hear a text when the typing pauses, and only if it is new. */
  speak(text) {
    clearTimeout(this.speaking)
    this.speaking = setTimeout(() => {
      if (this.spoken.textContent !== text) this.spoken.textContent = text
    }, SPOKEN)
  }

  say(text, shown = false) {
    this.spoken.textContent = text
    if (shown) this.note(text)
  }

  // -- the caret

  // Rows of text_answer's "live" are [line, count, names].
  liveAt(line) {
    const row = this.live.find(([at]) => at >= line)
    if (!row) return []
    const [, , names] = row
    return names.split(" ")
  }

  moved(line) {
    const lines = new Set([line])
    this.bundles.light(lines, true)
    this.editor.lines.light(lines)
    if (this.help.classList.contains("ckw-note")) return
    const text = this.editor.line(line)
    const word = text.trim().split(/[\s,]/)[0]
    const meaning = word && this.meaning(word, line)
    this.help.replaceChildren()
    const fault = this.faults?.find((one) => one.line === line)
    if (fault) make(this.help, "span", {class: "ckw-bad"}, fault.message)
    else if (meaning) {
      make(this.help, "b", {}, meaning[0])
      make(this.help, "span", {}, ` ${meaning[1]}`)
    } else
      make(
        this.help,
        "span",
        {class: "ckw-soft"},
        "Ctrl+Space completes, Ctrl+/ comments out, Escape then Tab leaves.",
      )
  }

  /** What a word means at a line, as [name, rest]. */
  meaning(word, line) {
    const register = word.match(/^r(\d+)\b/)
    if (!register) return this.words.meaning(word)
    const name = register[0]
    const row = this.live.find(([at]) => at === line)
    const [, , names = ""] = row ?? []
    const held = names.split(" ").find((one) => one.split(".")[0] === name)
    const sets = new RegExp(`^\\s*[^\\s;/]+\\s+${name}\\b`)
    const set = this.editor.lines.all.flatMap(({text}, n) => (sets.test(text) ? [n + 1] : []))
    const some = set.length > MOST_SET ? `${set.slice(0, MOST_SET).join(", ")} …` : set.join(", ")
    const where = set.length ? `set in line${set.length > 1 ? "s" : ""} ${some}` : "never set"
    const state = held ? `${held} is live here; ` : this.live.length ? "not live here; " : ""
    return [name, state + where]
  }
}
