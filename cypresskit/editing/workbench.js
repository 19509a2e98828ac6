// The workbench: an editor, and the answers to its text. It sends texts over a channel, and shows the
// answers that come back; see protocol.py.
import {followTheme, isSingle, keepKeys, make} from "../draw/shell.js"
import {BundleTable} from "./bundle_table.js"
import {Editor} from "./editor.js"
import {Figures, inWhole} from "./figures.js"
import {History} from "./history.js"
import {makeTerms, wordAt} from "./il_text.js"
import {Panels} from "./panels.js"
import {SmallProduct} from "./small_product.js"
import {StepHead} from "./step_head.js"

const DEBOUNCE_MS = 60 // without a key, before a text is sent
const ACK_TIMEOUT = 900 // milliseconds to wait for the message that a text has arrived
const EXPLAIN_MS = 100 // before the caret's line is explained, since the reader may be typing
const SPEAK_MS = 900 // without news, before a screen reader hears a message
const UNSENT = "cypresskit-unsent-texts"
const UNHEARD =
  "No answer: Python is running another cell, or was restarted. Your text is kept. If this message " +
  "stays, run the first cell and this cell again."
const RESTARTED =
  "Python was restarted: run the first cell and this cell again. Until then this page keeps your text."
const GUESS =
  "Which line costs the most? Click its number, or put the caret into that line and press "
const MAX_LINES = 8 // that a sentence names
const SEEN = 150 // characters of a headline that are visible
// The statements about a text: each becomes fresh with the part of its answer that has its name.
const STATEMENTS = ["headline", "findings", "text", "code", "verdict", "clocks", "costs"]

export class Workbench {
  /**
   * @param {HTMLElement} host
   * @param {{send: (message: object) => void, listen: (hear: (message: any) => void) => () => void}}
   *   channel
   * @param {() => void} begun what to do once it is laid out */
  constructor(host, channel, begun = () => {}) {
    this.host = host
    this.channel = channel
    this.begun = begun
    this.view = Math.random().toString(36).slice(2, 8)
    this.count = 0
    this.timers = {}
    this.answers = {} // to this text, by part
    this.words = new Map() // their names and meanings, of all texts
    host.classList.add("cypresskit", "ckw")
    keepKeys(host, isSingle) // x would cut the cell
    this.ends = [followTheme(host)]
    this.waiting = make(host, "p", {class: "ckw-waiting"}, "The workbench opens …")
    this.ends.push(channel.listen((message) => this.hear(message)))
    this.after("silence", ACK_TIMEOUT, () => {
      this.waiting.textContent = UNHEARD
    })
    channel.send({type: "hello"})
  }

  end() {
    for (const timer of Object.values(this.timers)) clearTimeout(timer)
    for (const end of this.ends) end()
    this.editor?.lines.end()
  }

  /** Do something after a while, unless it is put off again. */
  after(name, milliseconds, act) {
    clearTimeout(this.timers[name])
    this.timers[name] = setTimeout(act, milliseconds)
  }

  hear(message) {
    if (message.type === "state") return this.begin(message)
    if (!this.editor) return
    const ours = message.edit === this.edit
    const current = ours && this.editor.text === this.sent
    if (message.type === "answer" && current) this.answer(message)
    else if (message.type === "heard" && ours) this.heard(message.problem)
    else if (message.type === "working" && current) this.figures.works(message.part)
    else if (message.type === "done" && current) this.rest()
    else if (message.type === "text") this.takeOver(message)
    else if (message.type === "history") this.showHistory(message)
    else if (message.type === "versions") this.history.versions.show(message)
    else if (message.type === "line") this.step?.showLines(message)
    else if (message.type === "trouble") this.note(message.message)
    else if (message.type === "gone") this.lose()
  }

  // -- the parts of the page

  begin(state) {
    clearTimeout(this.timers.silence)
    if (this.editor) {
      // The kernel was restarted, or the widget made again: continue with the text that is here.
      this.showHistory(state.history)
      return this.typed ? this.send() : this.takeOver(state)
    }
    this.waiting.remove()
    this.state = state
    const {host} = this
    host.setAttribute("role", "group")
    host.setAttribute("aria-label", `Workbench: ${state.name}`)
    const above = make(host, "div")
    const page = make(host, "div", {class: "ckw-page"})
    const head = make(page, "div", {class: "ckw-head"})
    this.verdictLine = make(head, "p", {class: "ckw-verdict ckw-of-headline"})
    this.passed = make(head, "p", {class: "ckw-passed ckw-of-clocks", role: "status"})
    this.speed = make(head, "p", {class: "ckw-speed ckw-of-clocks"})
    this.unsaved = make(page, "p", {class: "ckw-unsaved", role: "alert", hidden: ""})
    const main = make(page, "div", {class: "ckw-main"})
    const left = make(main, "div", {class: "ckw-left"})
    this.editor = new Editor(left, state.text, {
      label: `IL of ${state.name}`,
      changed: () => this.changed(),
      moved: (line) => this.moved(line),
      picked: (line) => this.guess(line),
      note: (words) => this.note(words),
    })
    this.help = make(left, "p", {class: "ckw-help"})
    this.notes = make(left, "p", {class: "ckw-help ckw-note", role: "status"})
    this.small = new SmallProduct(make(main, "div", {class: "ckw-right"}), (row, column) => {
      this.asked = true
      this.ask({part: "replay", element: [row, column]})
    })
    const row = make(page, "div", {class: "ckw-open"})
    this.prompt = make(page, "p", {class: "ckw-prompt ckw-of-clocks", role: "status", hidden: ""})
    const below = make(page, "div", {class: "ckw-below", tabindex: "-1"})
    this.findings = make(below, "div", {class: "ckw-findings ckw-of-findings"})
    this.panels = new Panels(row, make(page, "div", {class: "ckw-panels"}))
    this.addPanels(row, below)
    if (state.step) {
      const climb = this.panels.add("climb", "Climb", "Your saved steps in one picture")
      this.step = new StepHead(above, climb, state.step, {
        share: () => this.ask({part: "climb"}),
        more: () => this.post({type: "line"}),
        restart: () => this.post({type: "restart"}),
      })
    }
    const opens = state.step?.opens ?? [...this.panels.all.keys()]
    const il = this.panels.add("il", "IL in a minute", "What the text of a kernel consists of")
    makeTerms(il, state.tables.il_minute)
    makeTerms(this.panels.add("legend", "Legend", "The marks, and the keys"), state.tables.legend)
    for (const name of opens) this.panels.open(name)
    if (state.newcomer) {
      il.parentElement.prepend(il) // the site's page says so
      this.panels.open("il")
    }
    this.spoken = make(host, "p", {class: "ckw-heard", "aria-live": "polite"})
    this.showHistory(state.history)
    this.showUnsaved(state.problem)
    this.takeOver(state)
    this.sendUnsent(state)
    this.begun()
  }

  /** Send what couldn't be sent when the page was left. A text based on the file's becomes the
   * newest; others only enter the history. */
  sendUnsent({file, text}) {
    const unsent = Object.values(allUnsent()[file] ?? {})
    keepUnsent(file)
    for (const {base, text: mine} of unsent) {
      if (base !== text) {
        this.post({type: "unsent", text: mine})
        continue
      }
      this.editor.begin(mine)
      this.edit = "" // not of the text that the page shows
      this.changed()
      this.send()
    }
  }

  /** The panels that buttons open. */
  addPanels(row, below) {
    const {panels} = this
    const costs = panels.add("costs", "Costs", "What each line costs")
    const limits = panels.add("limits", "Limits", "What limits the kernel, and what could help")
    const bundles = panels.add("bundles", "Bundles", "What the compiler made of each line")
    const card = panels.add("registers", "Registers", "Registers, wavefronts, and the launch")
    const history = panels.add("history", "History", "Your edits, and how fast they are")
    const goTo = (line, column) => this.editor.goTo(line, column)
    const {statistics} = this.state.tables
    const owner = {statistics, goTo, light: (lines) => this.light(lines)}
    this.figures = new Figures(owner, {terms: below, limits, card, costs, working: row})
    this.bundles = new BundleTable(make(bundles, "div", {class: "ckw-middle ckw-of-code"}), {
      goTo,
      picked: (line) => {
        this.editor.lines.show(line)
        this.light(new Set([line]), false)
      },
    })
    const recall = (entry) => this.post({type: "recall", entry})
    const compare = (entries) => this.post({type: "compare", entries})
    this.history = new History(make(history, "div", {class: "ckw-history"}), recall, compare)
  }

  /** The history has changed, and perhaps what the step saves. */
  showHistory({entries, kept, stuck}) {
    this.history.show(entries)
    this.step?.showSaved(kept)
    this.step?.showStuck(stuck)
  }

  // -- texts

  changed() {
    this.typed = true
    this.step?.begin()
    keepUnsent(this.state.file, this.view, {base: this.known, text: this.editor.text})
    this.markStale()
    this.after("sending", DEBOUNCE_MS, () => this.send())
  }

  /** The text has changed: all statements are about the previous one. The statement's elements have
   * the class `ckw-of-NAME`; the host's attribute `data-stale` lists the stale ones. */
  markStale() {
    this.host.dataset.stale = STATEMENTS.join(" ")
    this.answers = {}
    this.before = this.gflops // of the last correct kernel
    this.figures.works("")
    this.step?.forget()
    this.prompt.hidden = true
    this.wanted = 0 // the line that was guessed before there are costs
    if (this.help.querySelector(".ckw-bad")) this.help.replaceChildren()
    clearTimeout(this.timers.speaking)
    this.spoken.textContent = ""
    this.note("")
  }

  /** This statement is about this text. */
  markFresh(name) {
    const stale = this.host.dataset.stale.split(" ").filter((one) => one !== name)
    this.host.dataset.stale = stale.join(" ")
  }

  send() {
    clearTimeout(this.timers.sending)
    const {text} = this.editor
    const base = this.edit
    this.edit = `${this.view}-${++this.count}`
    this.sent = text
    this.after("silence", ACK_TIMEOUT, () => this.note(UNHEARD))
    this.host.setAttribute("aria-busy", "true")
    this.post({type: "text", edit: this.edit, text, base})
  }

  ask(message) {
    this.post({type: "ask", edit: this.edit, ...message})
  }

  post(message) {
    try {
      this.channel.send(message)
    } catch {
      this.lose()
    }
  }

  /** The kernel has ended. */
  lose() {
    this.rest()
    this.endSilence()
    this.showUnsaved(RESTARTED)
  }

  heard(problem = "") {
    this.endSilence()
    this.showUnsaved(problem)
    if (problem || this.editor.text !== this.sent) return
    this.known = this.sent
    this.typed = false
    keepUnsent(this.state.file, this.view)
  }

  endSilence() {
    clearTimeout(this.timers.silence)
    if (this.notes.textContent === UNHEARD) this.note("")
  }

  /** Show why the text isn't in the file; "" if it is. */
  showUnsaved(problem) {
    if (this.unsaved.textContent !== problem) this.unsaved.textContent = problem
    this.unsaved.hidden = !problem
  }

  /** Show a text that doesn't come from this page, unless the reader has typed meanwhile: then this
   * page's text is sent, and the other one goes into the history. */
  takeOver({text, edit}) {
    const ours = (name) => name?.startsWith(`${this.view}-`)
    if (ours(edit) && ours(this.edit)) return
    if (this.typed && this.editor.text !== this.sent) return
    this.edit = edit
    this.known = text
    this.sent = text
    this.typed = false
    if (text !== this.editor.text) this.editor.begin(text)
    this.markStale()
    this.post({type: "shown", edit})
  }

  // -- answers

  answer(answer) {
    const {part, faults = [], refusal} = answer
    this.answers[part] = answer
    this.figures.works("")
    if (part === "climb") this.step?.showClimb(answer)
    else this[`show_${part}`](answer)
    if (!faults.length && !refusal) this.markFresh(part)
  }

  /** No more answers come for this text. */
  rest() {
    this.figures.works("")
    this.host.removeAttribute("aria-busy")
  }

  show_text({faults, live, words}) {
    for (const [word, meaning] of Object.entries(words)) this.words.set(word, meaning)
    this.editor.paintFaults(faults)
    if (faults.length) {
      const [{line, column, message}] = faults
      const spoken = `Line ${line}, column ${column}: ${message}`
      this.headline("fault", `Line ${line}: ${message}`, faults, spoken)
      const onclick = () => this.panels.open("il", true, true)
      make(make(this.findings, "p"), "button", {onclick}, "IL in a minute")
    } else {
      const title = (count, names) => `${count} register${count === 1 ? "" : "s"} in use: ${names}`
      const rows = live.map(([line, count, names]) => [line, count, count, title(count, names)])
      this.editor.lines.know("live", cellsOf(rows, 2))
    }
    this.moved(this.editor.caret.line)
  }

  show_code(answer) {
    if (answer.refusal) {
      const {line, message} = answer.refusal
      this.headline("fault", line ? `Line ${line}: ${message}` : message, [answer.refusal])
      return
    }
    this.list([])
    this.explain()
    this.bundles.show(answer)
    this.editor.lines.know("color", this.bundles.colors)
    this.figures.card(answer.card)
    if (!this.opened) this.open(answer.rows)
  }

  /** Scroll at first to the main loop, or to the reader's place above it. The caret is there, or in
   * the line that says where the reader's line belongs. */
  open(rows) {
    this.opened = true
    const [first] = this.bundles.colors.keys()
    if (!rows.some(({loop}) => loop) || this.editor.area.matches(":focus")) return
    const mine = this.editor.area.value.split("\n").findIndex((line) => /;.*\byour line/.test(line))
    const here = mine < 0 ? first : mine + 1
    this.editor.placeCaret(here)
    this.editor.move()
    this.editor.lines.toTop(Math.min(here, first) - 2)
  }

  show_verdict({right, message, findings, small}) {
    if (right) this.figures.correctCard = this.answers.code?.card
    this.editor.paintFaults(findings.filter(({line}) => line))
    this.headline(right ? "right" : "wrong", message, findings)
    this.figures.terms.hidden = true
    this.small.show(small)
  }

  /** Show the speed of a correct kernel; if it passes a target, the reader's climb, too. */
  show_clocks(answer) {
    const {right, message} = this.answers.verdict ?? {}
    const {gflops, size, bound, problem, notes} = answer
    this.speed.replaceChildren()
    this.figures.clocks(answer, right)
    const passed = right && !problem && this.step?.clocks(gflops, notes[0])
    this.passed.textContent = passed || ""
    if (passed) {
      this.panels.open("climb")
      this.ask({part: "climb"})
    }
    if (problem && right) this.headline("wrong", problem, [{message: problem}])
    if (problem || !right) return
    const shown = inDigits(gflops)
    const isSquare = size.every((side) => side === size[0])
    const where = isSquare ? `N = ${inWhole(size[0])}` : size.map(inWhole).join(" x ")
    make(this.speed, "b", {}, shown)
    make(this.speed, "span", {}, ` Gflop/s at ${where}`)
    const change = gflops - (this.before ?? gflops)
    const [kind, sign] = change > 0 ? ["ckw-more", "+"] : ["ckw-less", "−"]
    if (inDigits(gflops - change) !== shown)
      make(this.speed, "span", {class: kind}, ` ${sign}${inDigits(Math.abs(change))}`)
    this.gflops = gflops
    if (!this.wanted) this.askGuess()
    this.speak(`${message} ${shown} gigaflops at ${where}, limited by ${bound}.`)
  }

  show_costs(answer) {
    const rows = answer.lines.map(({line, cost, shown, text}) => [line, cost, shown, text])
    this.editor.lines.know("cost", cellsOf(rows, 0.01))
    this.figures.costs(answer)
    this.explain()
    if (!answer.costliest) this.prompt.hidden = true
    if (this.wanted) this.guess(this.wanted)
  }

  /** Ask for the most expensive line, until the reader has guessed. */
  askGuess() {
    this.wanted = 0
    if (!this.state.step?.guess || this.guessed) return
    this.prompt.hidden = false
    this.prompt.textContent = GUESS
    const onclick = () => {
      const {line, column} = this.editor.caret
      this.guess(line)
      this.editor.goTo(line, column + 1) // the button goes, the focus stays
    }
    make(this.prompt, "button", {onclick}, "This line")
  }

  /** Take a line as the reader's guess, if the page asks for one. */
  guess(line) {
    const {costs} = this.answers
    if (this.prompt.hidden || this.guessed) return
    if (!costs) {
      this.wanted = line
      this.prompt.textContent = `Your guess is line ${line}: its cost comes soon.`
      return
    }
    if (!costs.lines.some((row) => row.line === line)) {
      this.note(`Line ${line} takes no time by itself.`)
      return this.askGuess()
    }
    this.guessed = true
    const verdict = line === costs.costliest ? "correct" : "incorrect"
    this.prompt.textContent = `Your guess, line ${line}, is ${verdict}.`
    this.panels.open("costs")
  }

  /** Show the terms of an element. A note on the first incorrect one becomes the headline. */
  show_replay(answer) {
    this.figures.replay(answer)
    const {notes = [], terms = [], problem, message} = answer
    const lines = terms.flatMap(({right, line}) => (right || !line ? [] : [line]))
    if (lines.length) this.light(new Set(lines))
    if (lines.length && this.asked) this.editor.lines.show(Math.min(...lines))
    this.asked = false
    const spoken = [problem ?? message, ...notes].join(" ")
    this.speak(spoken)
    const findings = this.answers.verdict?.findings ?? []
    const others = findings.filter(({kind}) => kind !== "answer")
    if (!notes.length || others.length === findings.length) return
    const sentence = notes[0].split(/(?<=\.) /)[0]
    const fault = {line: answer.line, message: notes[0]}
    if (fault.line) this.editor.paintFaults([fault])
    this.headline("wrong", sentence, [fault, ...others], spoken)
  }

  /** Highlight lines, and their operations. */
  light(lines, scroll = true) {
    this.editor.lines.light(lines)
    this.bundles.light(lines, scroll)
  }

  /** Set the headline: what was found about the text, in a sentence; and the list of the faults. */
  headline(kind, text, faults, spoken = text) {
    this.verdictLine.dataset.kind = kind
    this.verdictLine.textContent = text
    this.verdictLine.title = text
    this.markFresh("headline")
    this.list(faults)
    this.speak(spoken)
  }

  /** List faults or findings, with buttons to their lines. The headline isn't repeated. */
  list(faults) {
    this.findings.replaceChildren()
    this.markFresh("findings")
    const headline = this.verdictLine.textContent
    const read = headline.length <= SEEN ? headline : ""
    for (const {line, column, message, advice} of faults) {
      const known = read.includes(message.replace(/\.$/, ""))
      if (known && !line && !advice) continue
      const item = make(this.findings, "p")
      const onclick = () => this.editor.goTo(line, column)
      if (line) make(item, "button", {onclick}, `${known ? "Go to line" : "line"} ${line}`)
      if (!known) make(item, "span", {}, ` ${message.replace(read, "")}`)
      if (advice) make(item, "span", {class: "ckw-advice"}, ` ${advice}`)
    }
  }

  /** Show a message in place of the help, until the text changes. */
  note(text) {
    this.notes.textContent = text
  }

  /** Let a screen reader hear a message once typing pauses. */
  speak(text) {
    this.after("speaking", SPEAK_MS, () => {
      this.spoken.textContent = text
    })
  }

  // -- the caret

  moved(line) {
    this.light(new Set([line]))
    this.after("explaining", EXPLAIN_MS, () => this.explain())
  }

  /** Show below the editor what the caret's line means, and what it costs. */
  explain() {
    const {line, column} = this.editor.caret
    const text = this.editor.line(line)
    const words = [wordAt(text, column), text.trim().split(/[\s,]/)[0]]
    const meaning = words.map((word) => word && this.meaning(word, line)).find(Boolean)
    this.help.replaceChildren()
    const say = (words, kind = "", tag = "span") => make(this.help, tag, {class: kind}, words)
    const fault = this.answers.text?.faults.find((one) => one.line === line)
    if (fault) {
      say(fault.message, "ckw-bad")
      return
    }
    say(`${this.editor.lines.cutRemark(line)} `)
    if (meaning) {
      say(meaning[0], "", "b")
      say(` ${meaning[1]}. `)
      const {cost} = this.editor.lines.all[line - 1]
      if (cost?.text && !this.panels.all.get("costs").box.hidden) say(cost.title, "ckw-of-costs")
    } else say("Put the caret on a word to see what it means.", "ckw-soft")
  }

  /** Return what a word means in a line, as [name, meaning]. */
  meaning(word, line) {
    const [name] = word.match(/^r\d+\b/) ?? []
    if (!name) return this.words.get(word)
    const live = this.answers.text?.live ?? []
    const [, , names = ""] = live.find(([at]) => at === line) ?? []
    const held = names.split(" ").find((one) => one.split(".")[0] === name)
    const sets = new RegExp(`^\\s*[^\\s;/]+\\s+${name}\\b`)
    const set = this.editor.lines.all.flatMap(({text}, n) => (sets.test(text) ? [n + 1] : []))
    const where = set.length ? `set in ${linesInWords(set)}` : "no line sets it"
    const state = held ? `${held} is in use here; ` : live.length ? "not in use here; " : ""
    return [name, state + where]
  }
}

/** Return the texts that could not be sent, {base, text} by file and view. They outlive a reload. */
function allUnsent() {
  try {
    return JSON.parse(sessionStorage.getItem(UNSENT)) ?? {}
  } catch {
    return {} // nothing is stored there, or nothing of ours
  }
}

/** Keep a view's text, or none once it is sent; without a view, none of the file. */
function keepUnsent(file, view = "", text = undefined) {
  const all = allUnsent()
  all[file] = view ? {...all[file], [view]: text} : undefined
  try {
    sessionStorage.setItem(UNSENT, JSON.stringify(all))
  } catch {
    // A page that may keep nothing.
  }
}

/** Return a speed in at least three digits. */
function inDigits(gflops) {
  const short = gflops.toLocaleString("en", {maximumSignificantDigits: 3})
  return gflops < 1000 ? short : inWhole(gflops)
}

/** The cells of a gutter's column, of [line, number, text, title]; the highest number fills the bar.
 * It is at least `least`. */
function cellsOf(rows, least) {
  const highest = Math.max(least, ...rows.map(([, number]) => number))
  const cell = ([line, number, text, title]) => [
    line,
    {text, title, part: number / highest, most: number === highest},
  ]
  return new Map(rows.map(cell))
}

/** "line 31" or "lines 3, 6". */
function linesInWords(lines) {
  const some = lines.slice(0, MAX_LINES).join(", ")
  return `line${lines.length > 1 ? "s" : ""} ${some}${lines.length > MAX_LINES ? " …" : ""}`
}
