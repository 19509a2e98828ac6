// The workbench: an editor, and the answers to its text. It sends texts over a channel, and shows
// the answers that come back; see protocol.py.
import {followTheme, isSingle, keepKeys, make} from "../draw/shell.js"
import {BundleTable} from "./bundle_table.js"
import {CostGuess} from "./cost_guess.js"
import {Editor} from "./editor.js"
import {Figures, inWhole} from "./figures.js"
import {Headline} from "./headline.js"
import {History} from "./history.js"
import {makeTerms} from "./il_text.js"
import {LineHelp} from "./line_help.js"
import {Panels} from "./panels.js"
import {SmallProduct} from "./small_product.js"
import {StepHead} from "./step_head.js"
import {Texts} from "./texts.js"

const DEBOUNCE_MS = 60 // without a key, before a text is sent
const EXPLAIN_MS = 100 // before the caret's line is explained, since the reader may be typing
const PATIENCE_MS = 3000 // before a page without an answer says why
const RESTARTED =
  "Python was restarted: run the first cell and this cell again. Until then this page keeps your text."
// The statements about a text: each becomes fresh with the part of its answer that has its name.
const STATEMENTS = ["headline", "findings", "text", "code", "verdict", "clocks", "costs"]
// The panels that buttons open: name, label, and what they show. A step opens some of the first.
const PANELS = [
  ["costs", "Costs", "What each line costs"],
  ["limits", "Limits", "What limits the kernel, and what could help"],
  ["bundles", "Bundles", "What the compiler made of each line"],
  ["registers", "Registers", "Registers, wavefronts, and the launch"],
  ["history", "History", "Your edits, and how fast they are"],
]
const STEP_PANELS = [["climb", "Climb", "Your saved steps in one picture"]]
const MEANINGS = [
  ["il", "IL in a minute", "What the text of a kernel consists of"],
  ["legend", "Legend", "The marks, and the keys"],
]

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
    this.silence = setInterval(() => {
      waiting.textContent = explainSilence()
    }, PATIENCE_MS)
    const begin = (message) => {
      clearInterval(this.silence)
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
    clearInterval(this.silence)
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
    this.unheard = "" // why there was no answer, as it was noted last
    this.isClicked = false // the element of C whose terms come next
    this.isPlaced = false // the caret, in the main loop
    this.gap = state.gap // the line that asks for the reader's, or 0
    /** @type {number | undefined} */
    this.gflops = undefined // of the last correct kernel
    /** @type {number | undefined} */
    this.before = undefined // of the one before this text
    host.setAttribute("role", "group")
    host.setAttribute("aria-label", `Workbench: ${state.name}`)

    const above = make(host, "div")
    const page = make(host, "div", {class: "ckw-page"})
    const head = make(page, "div", {class: "ckw-head"})
    this.unsaved = make(page, "p", {class: "ckw-unsaved", role: "alert", hidden: ""})
    const main = make(page, "div", {class: "ckw-main"})
    const left = make(main, "div", {class: "ckw-left"})
    const right = make(main, "div", {class: "ckw-right"})
    this.small = new SmallProduct(right, (row, column) => {
      this.isClicked = true
      this.ask({part: "replay", element: [row, column]})
    })
    const help = make(page, "div", {class: "ckw-step"})
    const row = make(page, "div", {class: "ckw-open"})
    const question = make(page, "div")
    const below = make(page, "div", {class: "ckw-below", tabindex: "-1"})
    const panels = make(page, "div", {class: "ckw-panels"})

    const goTo = (line, column) => this.editor.goTo(line, column)
    const markFresh = (name) => this.markFresh(name)
    this.headline = new Headline({head, below, host}, {goTo, markFresh})
    this.passed = make(head, "p", {class: "ckw-passed ckw-of-clocks", role: "status"})
    this.speed = make(head, "p", {class: "ckw-speed ckw-of-clocks"})
    this.editor = new Editor(left, state.text, {
      label: `IL of ${state.name}`,
      changed: () => this.changed(),
      moved: (line) => this.moved(line),
      picked: (line) => this.guess.guess(line),
      note: (words) => this.help.note(words),
      explain: () => this.headline.say(this.help.box.textContent),
    })
    this.editor.area.ariaDescribedByElements = [this.editor.keys, this.headline.sentence]
    this.panels = new Panels(row, panels)
    const showsCosts = () => !this.panels.all.get("costs").box.hidden
    this.help = new LineHelp(left, this.editor, new RegExp(state.token, "g"), showsCosts)
    this.guess = new CostGuess(question, this.editor, {
      isAsked: Boolean(state.step?.guess),
      note: (words) => this.help.note(words),
      done: () => this.panels.open("costs"),
    })

    const all = [...PANELS, ...(state.step ? STEP_PANELS : []), ...MEANINGS]
    const boxes = Object.fromEntries(
      all.map(([name, label, title]) => [name, this.panels.add(name, label, title)]),
    )
    const {statistics} = state.tables
    const places = {terms: below, limits: boxes.limits, costs: boxes.costs, working: row}
    const light = (lines) => this.light(lines)
    this.figures = new Figures({statistics, goTo, light}, {...places, card: boxes.registers})
    const bundles = make(boxes.bundles, "div", {class: "ckw-middle ckw-of-code"})
    this.bundles = new BundleTable(bundles, state.llvm, {
      goTo,
      picked: (line) => {
        this.editor.lines.show(line)
        this.light(new Set([line]), false)
      },
      compiled: () => this.showBundles(),
    })
    this.history = new History(make(boxes.history, "div", {class: "ckw-history"}), (entry) =>
      this.post({type: "recall", entry}),
    )
    this.step =
      state.step &&
      new StepHead(above, help, boxes.climb, state.step, {
        share: () => this.ask({part: "climb"}),
        more: () => this.post({type: "line"}),
        restart: () => this.post({type: "restart"}),
      })
    makeTerms(boxes.il, state.tables.il_minute)
    makeTerms(boxes.legend, state.tables.legend)
    for (const name of state.step?.opens ?? PANELS.map(([name]) => name)) this.panels.open(name)
    if (state.step?.opens.includes("bundles")) right.prepend(boxes.bundles) // it is about these
    if (state.newcomer) {
      panels.prepend(boxes.il) // the site's page says so
      this.panels.open("il")
      const onclick = () => this.panels.open("il", true, true)
      make(above, "button", {class: "ckw-guide", onclick}, "IL in a minute")
    }
  }

  end() {
    for (const timer of Object.values(this.timers)) clearTimeout(timer)
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
   * the class `ckw-of-NAME`; the host's attribute `data-stale` lists the stale ones. */
  markStale() {
    this.host.dataset.stale = STATEMENTS.join(" ")
    this.before = this.gflops
    this.figures.works("")
    this.step?.forget()
    this.guess.forget()
    this.help.forget()
    this.headline.hush()
  }

  /** This statement is about this text. */
  markFresh(name) {
    const stale = this.host.dataset.stale.split(" ").filter((one) => one !== name)
    this.host.dataset.stale = stale.join(" ")
  }

  ask(message) {
    this.post({type: "ask", edit: this.texts.edit, ...message})
  }

  post(message) {
    if (message.type === "text") {
      clearTimeout(this.timers.sending)
      this.after("silence", PATIENCE_MS, () => {
        this.unheard = explainSilence()
        this.help.note(this.unheard)
      })
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
    this.endSilence()
    this.showUnsaved(RESTARTED)
  }

  heard(message) {
    if (!this.texts.heard(message)) return
    this.endSilence()
    this.showUnsaved(message.problem)
  }

  endSilence() {
    clearTimeout(this.timers.silence)
    if (this.help.notes.textContent === this.unheard) this.help.note("")
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
  work({part, words}) {
    this.figures.works(part)
    if (words) this.headline.wait(words)
  }

  /** No more answers come for this text. */
  rest() {
    this.figures.works("")
    this.host.removeAttribute("aria-busy")
  }

  show_text({faults, live, meanings}) {
    this.help.learn(meanings)
    this.editor.paintFaults(faults)
    if (faults.length) {
      const [{line, column, message}] = faults
      const spoken = `Line ${line}, column ${column}: ${message}`
      this.headline.show("fault", `Line ${line}:`, message, faults, spoken)
      const onclick = () => this.panels.open("il", true, true)
      make(make(this.headline.faults, "p"), "button", {onclick}, "IL in a minute")
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
    if (!rows.some(({loop}) => loop) || line + column > 1) return
    const here = this.gap || first
    this.editor.placeCaret(here, this.gap ? Number.POSITIVE_INFINITY : 1)
    this.editor.move()
    this.editor.lines.toTop(Math.min(here, first) - 2)
  }

  show_verdict({right, message, aside = "", findings, small}) {
    if (right) this.figures.correctCard = this.texts.answers.code?.card
    this.editor.paintFaults(findings.filter(({line}) => line))
    this.headline.show(right ? "right" : "wrong", message, aside, findings)
    this.figures.terms.hidden = true
    this.small.show(small)
  }

  /** Show the speed of a correct kernel; if it passes a target, the reader's climb, too. */
  show_clocks(answer) {
    const {right} = this.texts.answers.verdict ?? {}
    const {gflops, size, bound, problem, notes = []} = answer
    this.speed.replaceChildren()
    this.figures.clocks(answer, right)
    const isTimed = right && !problem
    const {passed = "", toPass = ""} = (isTimed && this.step?.clocks(gflops, notes[0])) || {}
    this.passed.textContent = passed || toPass
    this.passed.classList.toggle("ckw-soft", !passed)
    if (passed) {
      this.panels.open("climb")
      this.ask({part: "climb"})
    }
    if (problem && right) this.headline.show("wrong", problem, "", [])
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
    this.guess.ask()
    const {text} = this.headline
    this.headline.speak(`${text} ${shown} gigaflops at ${where}, limited by ${bound}.`)
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
    this.figures.replay(answer)
    const {fault, notes = [], terms = [], problem, message} = answer
    const lines = terms.flatMap(({right, line}) => (right || !line ? [] : [line]))
    if (lines.length) this.light(new Set(lines))
    if (lines.length && this.isClicked) this.editor.lines.show(Math.min(...lines))
    this.isClicked = false
    const said = fault ? [fault.message, fault.advice] : []
    const spoken = [problem ?? message, ...said, ...notes].join(" ")
    this.headline.speak(spoken)
    const findings = this.texts.answers.verdict?.findings ?? []
    const others = findings.filter(({kind}) => kind !== "answer")
    if (!fault || others.length === findings.length) return
    if (fault.line) this.editor.paintFaults([fault])
    this.headline.show("wrong", fault.message, "", [fault, ...others], spoken)
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

/** Return why there is no answer yet, as far as a page can tell, and what to do. */
function explainSilence() {
  const prompts = [...document.querySelectorAll(".jp-InputPrompt")]
  if (prompts.some(({textContent}) => textContent.includes("*")))
    return "No answer yet. Python is running a cell. Your text is kept."
  const advice = " If this message stays, run the first cell and this cell again."
  return `No answer yet: the computer that runs Python is busy. Your text is kept.${prompts.length ? advice : ""}`
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
