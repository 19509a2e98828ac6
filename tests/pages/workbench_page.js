// A channel that a test holds, in the page: it answers each text after a while, in parts, as Python
// does. All that it says of a text holds the text's stamp, a number of five digits, so that a test
// can tell of which text each statement on the page is.

/** The stamp of a text: 20000 to 29999, so that no difference between two is one. */
function stampOf(text) {
  let stamp = 7
  for (const letter of text) stamp = (stamp * 31 + letter.codePointAt(0)) % 9973
  return 20000 + stamp
}

/** What becomes of a text: letters in it decide. */
function fateOf(text) {
  if (text.includes("fault")) return "fault"
  if (text.includes("refuse")) return "refusal"
  return text.includes("wrong") ? "wrong" : "right"
}

const meanings = {
  mad: ["mad", "d, a, b, c · any slot · d = a * b + c"],
  mov: ["mov", "d, a · any slot · d = a"],
  mul: ["mul", "d, a, b · any slot · d = a * b"],
  "cb0[0].z": ["cb0[0] of this launch", "z: k"],
}

function answersTo(text) {
  const stamp = stampOf(text)
  const fate = fateOf(text)
  const lines = text.split("\n")
  const some = lines.map((_, n) => n + 1).filter((n) => n % 3 === 0)
  const fault = {line: Math.min(3, lines.length), column: 1, message: `fault ${stamp}`}
  if (fate === "fault") return [{part: "text", faults: [fault], registers: [], meanings}]
  const names = [`r${stamp}`]
  const registers = some.map((line) => ({line, live: names, sets: names}))
  const answers = [{part: "text", faults: [], registers, meanings}]
  if (fate === "refusal")
    return [...answers, {part: "code", refusal: {line: 1, message: `refused ${stamp}`}}]
  const rows = some.slice(0, 40).map((line) => ({
    kind: "alu",
    clause: 0,
    loop: true,
    new: false,
    text: "",
    operations: [[0, `OP${stamp}`, line, `op ${stamp}`]],
  }))
  const card = {
    bundles_per_iteration: stamp,
    gprs: stamp,
    wavefronts: stamp,
    fetches: stamp,
    slots5_pct: stamp,
  }
  const is_correct = fate === "right"
  const verdict = {part: "verdict", is_correct, message: `verdict ${stamp}`, findings: []}
  verdict.launched = `launched ${stamp}`
  const ones = [
    [1, 1],
    [1, 1],
  ]
  const c = [
    [2, is_correct ? 2 : stamp],
    [2, 2],
  ]
  const sums = [
    ["sum", "sum"],
    ["sum", "sum"],
  ]
  if (!text.includes("endless"))
    verdict.small = {
      sums,
      a: ones,
      b: ones,
      c,
      expected: [
        [2, 2],
        [2, 2],
      ],
    }
  if (!is_correct) verdict.findings = [{...fault, advice: `advice ${stamp}`}]
  const term = {
    text: `term ${stamp}`,
    is_correct: false,
    note: `note ${stamp}`,
    line: 3,
    lines: [3, 6],
  }
  const first = {line: 3, message: `Red ${stamp}.`, advice: `And ${stamp} more.`}
  const said = {findings: [first], notes: [`other ${stamp}`]}
  const replay = {part: "replay", message: `replay ${stamp}`, ...said, terms: [term], more: 0}
  return [
    ...answers,
    {part: "code", rows, card},
    verdict,
    {
      part: "clocks",
      size: [stamp, stamp, stamp],
      gflops: stamp,
      notes: [`${stamp} % of peak`],
      bound: `texture ${stamp}`,
      limit: "texture",
      help: `help ${stamp}`,
      busy: {ALU: stamp / 100, texture: stamp / 100},
      steps: [{text: `step ${stamp}`, lines: [3, 6]}],
    },
    ...(is_correct ? [] : [replay]),
    {
      part: "costs",
      lines: some.map((line) => ({
        line,
        work: stamp / 100,
        cost: stamp / 100,
        shown: `${stamp}.0`,
        text: `${stamp}`,
      })),
      costliest: [3, 9],
      message: `Line 3 costs the most: ${stamp}`,
    },
  ]
}

class Answerer {
  /** @param {(low: number, high: number) => number} wait milliseconds between two parts
   * @param {string} text what is in the file */
  constructor(wait, text) {
    this.wait = wait
    this.text = text
    this.heard = []
    this.hearers = []
    this.silent = false
    this.history = {entries: []}
    this.brought = 0
    this.step = null
    this.tables = {
      il_minute: [],
      legend: [],
      statistics: [
        ["registers", "gprs", ""],
        ["full bundles", "slots5_pct", ""],
      ],
    }
  }

  listen(hear) {
    this.hearers.push(hear)
    return () => {
      this.hearers = this.hearers.filter((other) => other !== hear)
    }
  }

  say(message) {
    for (const hear of this.hearers) hear(message)
  }

  send(message) {
    this.heard.push(message)
    if (message.type === "hello") this.begin()
    if (message.type === "text") this.text = message.text
    if (message.type === "unsent") this.say({type: "heard", edit: message.edit, problem: ""})
    if (["text", "shown"].includes(message.type) && !this.silent)
      this.answer({edit: message.edit, text: this.text})
  }

  /** Another text comes from elsewhere. */
  bring(text) {
    this.text = text
    this.say({type: "text", text, edit: `file-${++this.brought}`})
  }

  begin() {
    const {text, tables, history} = this
    const name = "my.il"
    setTimeout(() => {
      this.say({
        type: "state",
        edit: "file-0",
        name,
        file: `/${name}`,
        problem: "",
        text,
        gap: text.split("\n").findIndex((line) => line.includes("your line")) + 1,
        colors: 8,
        token: String.raw`[A-Za-z_]\w*(?:\[[^\]]*\](?:\.\w+)?)?`,
        tables,
        history,
        step: this.step,
        llvm: true,
      })
    })
  }

  async answer({edit, text}) {
    const pause = () => new Promise((go) => setTimeout(go, this.wait(0, 60)))
    await pause()
    this.say({type: "heard", edit, problem: ""})
    for (const answer of answersTo(text)) {
      this.say({type: "working", edit, part: answer.part})
      await pause()
      this.say({type: "answer", edit, ...answer})
    }
    this.say({type: "done", edit})
  }
}

/** How well an element is seen: its own opacity, times that of all around it. */
function opacityOf(element) {
  let seen = 1
  for (let at = element; at; at = at.parentElement) {
    const style = getComputedStyle(at)
    if (style.display === "none" || style.visibility === "hidden") return 0
    seen *= Number(style.opacity)
  }
  return seen
}

/** The statements that are of another text than the one in the editor, and don't look it. */
function unmarkedStatements(host) {
  const stamp = String(stampOf(host.querySelector(".ckw-area").value))
  const wrong = []
  const check = (element, words, where) => {
    if (!words || element.closest(".ckw-history")) return
    for (const [said] of words.replaceAll(",", "").matchAll(/(?<!\d)2\d{4}(?!\d)/g))
      if (said !== stamp && opacityOf(element) > 0.7) wrong.push(`${where}: ${words}`)
  }
  const walker = document.createTreeWalker(host, NodeFilter.SHOW_ELEMENT)
  while (walker.nextNode()) {
    const element = /** @type {Element} */ (walker.currentNode)
    const name = `${element.tagName} ${element.getAttribute("class") ?? ""}`
    const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)
    check(element, own.map((node) => node.textContent).join(""), name)
    for (const attribute of ["title", "aria-label"])
      check(element, element.getAttribute(attribute), `${attribute} of ${name}`)
  }
  const gain = host.querySelector(".ckw-more")
  if (gain && opacityOf(gain) > 0.7 && fateOf(host.querySelector(".ckw-area").value) !== "right")
    wrong.push(`a gain of a wrong kernel: ${gain.textContent}`)
  return wrong
}
