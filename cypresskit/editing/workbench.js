// The workbench: an editor, and the answers to its text. It sends texts over a channel, and shows
// the answers that come back; see protocol.py.
import {followTheme, isSingle, keepKeys, make} from "../draw/shell.js"
import {BundleTable} from "./bundle_table.js"
import {CostGuess} from "./cost_guess.js"
import {Editor} from "./editor.js"
import {Figures} from "./figures.js"
import {Headline} from "./headline.js"
import {History} from "./history.js"
import {makeTerms} from "./il_text.js"
import {LineHelp} from "./line_help.js"
import {Panels} from "./panels.js"
import {Silence} from "./silence.js"
import {SmallProduct} from "./small_product.js"
import {Speed} from "./speed.js"
import {StepHead} from "./step_head.js"
import {Terms} from "./terms.js"
import {Texts} from "./texts.js"

const DEBOUNCE_MS = 60 // without a key, before a text is sent
const EXPLAIN_MS = 100 // before the caret's line is explained, since the reader may be typing
const RESTARTED =
  "Python was restarted: run the first cell and this cell again. Until then this page keeps your text."
// The statements about a text: each becomes fresh with the part of its answer that has its name.
const STATEMENTS = ["headline", "findings", "text", "code", "verdict", "clocks", "costs"]
export class Workbench {
  /**
   * @param {HTMLElement} host
   * @param {{send: (message: object) => void, listen: (hear: (message: any) => void) => () => void}}
   *   channel
   * @param {() => void} begun what to do once it is laid out */
  constructor(host, channel, begun = () => {}) {
    host.classList.add("cypresskit", "ckw")
    keepKeys(host, isSingle) // x would cut the cell
    /** @type {Bench | undefined} */
    this.bench = undefined
    const waiting = make(host, "p", {class: "ckw-waiting"}, "The workbench opens …")
    this.silence = new Silence(waiting)
    this.silence.begin()
    const begin = (message) => {
      this.silence.end()
      if (message.type === "gone") waiting.textContent = RESTARTED
      if (message.type !== "state") return
      waiting.remove()
      this.bench = new Bench(host, channel, message)
      this.bench.begin(message)
      begun()
    }
    const hear = (message) => (this.bench ? this.bench.hear(message) : begin(message))
    this.ends = [followTheme(host), channel.listen(hear)]
    channel.send({type: "hello"})
  }

  end() {
    this.silence.end()
    for (const end of this.ends) end()
    this.bench?.end()
  }
}

/** The page of a workbench, from the first `state` on. */
class Bench {
  /**
   * @param {HTMLElement} host
   * @param {{send: (message: object) => void}} channel
   * @param {any} state */
  constructor(host, channel, state) {
    this.host = host
    this.channel = channel
    this.texts = new Texts(state)
    this.timers = {}
    this.stale = new Set() // the names of stale statements
    this.given = state.step?.starter
    this.gap = state.gap // the line that asks for the reader's, or 0
    this.isPlaced = false // the caret, in the main loop
    this.isClicked = false // the element of C whose terms come next
    host.setAttribute("role", "group")
    host.setAttribute("aria-label", `Workbench: ${state.name}`)
    this.goTo = (line, column) => this.editor.goTo(line, column)

    const above = make(host, "div")
    const page = make(host, "div", {class: "ckw-page"})
    const head = make(page, "div", {class: "ckw-head"})
    this.unsaved = make(page, "p", {class: "ckw-unsaved", role: "alert", hidden: ""})
    const main = make(page, "div", {class: "ckw-main"})
    const left = make(main, "div", {class: "ckw-left"})
    const right = make(main, "div", {class: "ckw-right"})
    const hints = make(page, "div", {class: "ckw-step"})
    const row = make(page, "div", {class: "ckw-open"})
    const question = make(page, "div")
    const below = make(page, "div", {class: "ckw-below", tabindex: "-1"})
    const panels = make(page, "div", {class: "ckw-panels"})

    this.panels = new Panels(row, panels, state.step)
    this.makeHead(head, below)
    this.makeEditor(left, question, state)
    this.makeFigures(right, below, row, state)
    this.makeStep(above, hints, state.step)
    makeTerms(this.panels.boxes.il, state.tables.il_minute)
    makeTerms(this.panels.boxes.legend, state.tables.legend)
    if (state.step?.open_panels.includes("bundles")) right.prepend(this.panels.boxes.bundles)
    if (state.newcomer) {
      panels.prepend(this.panels.boxes.il) // the site's page says so
      this.panels.show("il")
      this.panels.offerIL(above, {class: "ckw-guide"})
    }
  }

  /** Make what says whether C is correct, and how fast the kernel is. */
  makeHead(head, below) {
    const markFresh = (name) => this.markFresh(name)
    this.headline = new Headline({head, below, host: this.host}, {goTo: this.goTo, markFresh})
    this.speed = new Speed(head)
  }

  /** Make the editor, what it says of the caret's line, and a step's question about its lines. */
  makeEditor(left, question, {step, name, text, token}) {
    this.editor = new Editor(left, text, {
      label: `IL of ${name}`,
      changed: () => this.changed(),
      moved: (line) => this.moved(line),
      picked: (line) => this.guess.guess(line),
      note: (text) => this.help.note(text),
      explain: () => this.headline.speakNow(this.help.box.textContent),
    })
    this.editor.area.ariaDescribedByElements = [this.editor.keys, this.headline.sentence]
    const showsCosts = () => !this.panels.boxes.costs.hidden
    this.help = new LineHelp(left, this.editor, new RegExp(token, "g"), showsCosts)
    this.silence = new Silence(this.help.notes)
    this.guess = new CostGuess(question, this.editor, {
      isAsked: Boolean(step?.has_guess),
      note: (text) => this.help.note(text),
      done: () => this.panels.show("costs"),
    })
    this.panels.buttons.costs.addEventListener("click", () => this.guess.close())
  }

  /** Make what shows the figures of the kernel, its bundles, the small product, and the history. */
  makeFigures(right, below, working, {llvm, tables, colors}) {
    const {limits, costs, registers, bundles, history} = this.panels.boxes
    const {goTo} = this
    const light = (lines) => this.light(lines)
    const places = {limits, costs, working, card: registers}
    this.terms = new Terms(below, {goTo, light})
    this.figures = new Figures({statistics: tables.statistics, goTo}, places)
    const middle = make(bundles, "div", {class: "ckw-middle ckw-of-code"})
    this.bundles = new BundleTable(middle, llvm, colors, {
      goTo,
      picked: (line) => {
        this.editor.lines.show(line)
        this.light(new Set([line]), false)
      },
      compiled: () => this.showBundles(),
    })
    this.small = new SmallProduct(right, (row, column) => {
      this.isClicked = true
      this.ask({part: "replay", element: [row, column]})
    })
    this.history = new History(make(history, "div", {class: "ckw-history"}), (entry) =>
      this.post({type: "recall", entry}),
    )
  }

  /** Make what shows the step, if this is one. */
  makeStep(above, hints, step) {
    this.step =
      step &&
      new StepHead(above, hints, this.panels.boxes.climb, step, {
        share: () => this.ask({part: "climb"}),
        more: () => this.post({type: "line"}),
        restart: () => this.post({type: "restart"}),
      })
  }

  end() {
    for (const timer of Object.values(this.timers)) clearTimeout(timer)
    this.silence.end()
    this.headline.hush()
    this.editor.lines.end()
  }

  /** Do something after a while, unless it is put off again. */
  after(name, milliseconds, act) {
    clearTimeout(this.timers[name])
    this.timers[name] = setTimeout(act, milliseconds)
  }

  hear(message) {
    const {type} = message
    const isOurs = this.texts.names(message.edit)
    if (type === "state") this.begin(message)
    else if (type === "answer" && isOurs) this.answer(message)
    else if (type === "heard") this.heard(message)
    else if (type === "working" && isOurs) this.work(message)
    else if (type === "done" && isOurs) this.rest()
    else if (type === "text") this.follow(message)
    else if (type === "history") this.showHistory(message)
    else if (type === "line") this.step?.showLines(message)
    else if (type === "trouble") this.help.note(message.message)
    else if (type === "gone") this.lose()
  }

  /** The history has changed, and perhaps what the step saves. */
  showHistory({entries, saved, wait}) {
    this.history.show(entries)
    this.step?.showSaved(saved)
    this.step?.showStuck(wait)
  }

  // -- texts

  /** Python has begun: it is new, or was restarted, or this page is. */
  begin(state) {
    const isOwn = this.texts.stage !== "saved"
    const messages = this.texts.begin(state)
    this.showHistory(state.history)
    this.showUnsaved(state.problem)
    if (!isOwn) this.showDraft()
    if (this.texts.stage !== "saved") this.step?.begin()
    for (const message of messages) this.post(message)
  }

  changed() {
    this.texts.type(this.editor.text)
    this.step?.begin()
    this.markStale()
    this.after("sending", DEBOUNCE_MS, () => this.post(this.texts.send()))
  }

  /** Show a text of another editor, unless this page's is newer. */
  follow(message) {
    if (!this.texts.take(message)) return
    this.showDraft()
    this.post({type: "shown", edit: message.edit})
  }

  /** Show a text that wasn't typed here. */
  showDraft() {
    const {draft} = this.texts
    if (draft !== this.editor.text) this.editor.begin(draft)
    this.markStale()
  }

  /** The text has changed: all statements are about the previous one. The statement's elements have
   * the class `ckw-of-NAME`; the host's attribute `data-stale` lists the stale ones. What the given
   * text lacks is a task, and no error: `data-given`. */
  markStale() {
    this.stale = new Set(STATEMENTS)
    this.showStale()
    this.host.toggleAttribute("data-given", this.texts.draft === this.given)
    this.speed.forget()
    this.figures.works("")
    this.step?.forget()
    this.guess.forget()
    this.help.forget()
    this.headline.hush()
  }

  /** This statement is about this text. */
  markFresh(name) {
    this.stale.delete(name)
    this.showStale()
  }

  showStale() {
    this.host.dataset.stale = [...this.stale].join(" ")
  }

  ask(message) {
    this.post({type: "ask", edit: this.texts.edit, ...message})
  }

  post(message) {
    if (message.type === "text") {
      clearTimeout(this.timers.sending)
      this.silence.begin()
      this.host.setAttribute("aria-busy", "true")
    }
    try {
      this.channel.send(message)
    } catch {
      this.lose()
    }
  }

  /** Python has ended. */
  lose() {
    this.rest()
    this.silence.end()
    this.showUnsaved(RESTARTED)
  }

  heard(message) {
    if (!this.texts.heard(message)) return
    this.silence.end()
    this.showUnsaved(message.problem)
  }

  /** Show why the text isn't in the file; "" if it is. */
  showUnsaved(problem = "") {
    if (this.unsaved.textContent !== problem) this.unsaved.textContent = problem
    this.unsaved.hidden = !problem
  }

  // -- answers

  answer(answer) {
    const {part, faults = [], refusal} = answer
    this.texts.answers[part] = answer
    this.figures.works("")
    this[`show_${part}`](answer)
    if (!faults.length && !refusal) this.markFresh(part)
  }

  /** A part of the answer is being made; or of the verdict, what isn't known yet. */
  work({part, progress}) {
    this.figures.works(part)
    if (progress) this.headline.wait(progress)
  }

  /** No more answers come for this text. */
  rest() {
    this.figures.works("")
    this.host.removeAttribute("aria-busy")
  }

  show_text({faults, registers, meanings}) {
    this.help.learn(meanings)
    this.editor.paintFaults(faults)
    if (faults.length) {
      const [{line, column, message}] = faults
      const spoken = `Line ${line}, column ${column}: ${message}`
      this.headline.show("fault", `Line ${line}:`, message, faults, spoken)
      this.panels.offerIL(make(this.headline.faults, "p"))
    } else {
      const rows = registers.map(({line, live}) => {
        const count = live.length
        const title = `${count} register${count === 1 ? "" : "s"} in use: ${live.join(" ")}`
        return [line, count, count, title]
      })
      this.editor.lines.know("live", cellsOf(rows, 2))
    }
    this.moved(this.editor.caret.line)
  }

  show_code(answer) {
    if (answer.refusal) {
      const {line, message} = answer.refusal
      this.headline.show("fault", line ? `Line ${line}:` : "", message, [answer.refusal])
      return
    }
    this.headline.list([])
    this.explain()
    this.showBundles()
    this.figures.card(answer.card)
    if (!this.isPlaced) this.place(answer.rows)
  }

  /** Show the bundles by the compiler that the reader has chosen. LLVM's are asked for. */
  showBundles() {
    const {value} = this.bundles.by
    const answer = this.texts.answers[value]
    if (!answer) return value === "llvm" && this.ask({part: "llvm"})
    this.bundles.show(answer)
    this.editor.lines.know("color", this.bundles.colors)
  }

  show_llvm() {
    if (this.bundles.by.value === "llvm") this.showBundles()
  }

  /** Scroll at first to the main loop, or to the reader's place above it. The caret is there, or in
   * the line that says where the reader's line belongs. */
  place(rows) {
    this.isPlaced = true
    const [first] = this.bundles.colors.keys()
    const {line, column} = this.editor.caret
    const isMoved = line > 1 || column > 0
    if (!rows.some(({loop}) => loop) || isMoved) return
    const here = this.gap || first
    this.editor.placeCaret(here, this.gap ? Number.POSITIVE_INFINITY : 1)
    this.editor.move()
    this.editor.lines.toTop(Math.min(here, first) - 2)
  }

  show_verdict({is_correct, message, aside = "", findings, small}) {
    if (is_correct) this.figures.isCorrect(this.texts.answers.code?.card)
    this.showFindings(is_correct ? "right" : "wrong", message, aside, findings)
    this.terms.hide()
    this.small.show(small)
  }

  /** Show what was found; of findings, the first is the headline. */
  showFindings(kind, message, aside, findings, spoken) {
    this.editor.paintFaults(findings.filter(({line}) => line))
    this.headline.show(kind, message, aside, findings, spoken)
  }

  /** Show the speed of a correct kernel; if it passes a target, the reader's climb, too. */
  show_clocks(answer) {
    const {is_correct, message, aside} = this.texts.answers.verdict ?? {}
    const {gflops, size, bound, problem, help} = answer
    const isTimed = is_correct && !problem
    const {passed, toPass} = (isTimed && this.step?.clocks(gflops, help)) || {}
    this.figures.clocks(answer, is_correct)
    this.speed.showTarget(passed, toPass)
    if (passed) {
      this.panels.show("climb")
      this.ask({part: "climb"})
    }
    if (problem && is_correct) this.headline.show("right", `${message} ${problem}`, aside, [])
    if (!isTimed) return
    const shown = this.speed.show(gflops, size)
    this.headline.speak(`${this.headline.text} ${shown}, limited by ${bound}.`)
    this.guess.ask()
  }

  show_costs(answer) {
    const rows = answer.lines.map(({line, cost, shown, text}) => [line, cost, shown, text])
    this.editor.lines.know("cost", cellsOf(rows, 0.01))
    this.figures.costs(answer)
    this.explain()
    this.guess.know(answer)
  }

  /** Show the terms of an element. What is wrong with an incorrect one becomes the headline. */
  show_replay(answer) {
    this.terms.show(answer)
    const {findings = [], notes = [], terms = [], problem, message} = answer
    const lines = terms.flatMap(({is_correct, line}) => (is_correct || !line ? [] : [line]))
    if (lines.length) this.light(new Set(lines))
    if (lines.length && this.isClicked) this.editor.lines.show(Math.min(...lines))
    this.isClicked = false
    const [first] = findings
    const texts = first ? [first.message, first.advice] : []
    const spoken = [problem ?? message, ...texts, ...notes].join(" ")
    this.headline.speak(spoken)
    if (first) this.showFindings("wrong", first.message, "", findings, spoken)
  }

  show_climb(answer) {
    this.step?.showClimb(answer)
  }

  // -- the caret

  /** Highlight lines, and their operations. */
  light(lines, scroll = true) {
    this.editor.lines.light(lines)
    this.bundles.light(lines, scroll)
  }

  moved(line) {
    this.light(new Set([line]))
    this.after("explaining", EXPLAIN_MS, () => this.explain())
  }

  explain() {
    this.help.show(this.texts.answers.text)
  }
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
