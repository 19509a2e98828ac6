// Rows of A in the banks of the LDS. The data come from lds_pitch.py. A bank serves one word per
// clock, and a work-item requests two words together. Eight neighbors that request the same word
// get it at once, so only different words are counted.
import {askGuess} from "../../draw/guess.js"
import {leave, listenKeys, make, makeButton, takeFocus} from "../../draw/shell.js"

const KEYS =
  "up and down choose a row, left and right move it by a bank, R lays all rows out by the pitch"

/** Bring the rows to life. */
export function beginPitch(host, data, _place, ends) {
  const {title, banks, groups, rows, pitches, choices, most, series, gpu, today, ghz} = data
  const button = (parent, text, act, title) => makeButton(parent, host, text, act, title)
  host.classList.add("cypresskit-figure")
  host.tabIndex = 0
  host.setAttribute("role", "group")
  host.setAttribute("aria-label", `${title}. Keys: ${KEYS}.`)
  // Places, in pixels, from a panel's upper left corner: the foot of the stacks of requests, the
  // rows of A and the height of one.
  const FOOT = 150,
    TOP = 160,
    HIGH = 10
  const PANEL = TOP + rows * HIGH + 28 // a panel's height
  const BAR = 56 // height of the highest bar
  const PHONE = 640
  /** Where everything is. On a phone one panel is below the other, and the bars are in two rows. */
  function layout(isNarrow) {
    const side = isNarrow ? 11 : 16
    const wide = banks * side
    const each = isNarrow ? pitches.length / 2 : pitches.length // bars in a row
    const width = isNarrow ? wide + 8 : 2 * wide + 82
    return {
      side,
      wide,
      width,
      panels: isNarrow
        ? [
            [4, 0],
            [4, PANEL + 16],
          ]
        : [
            [8, 0],
            [wide + 76, 0],
          ],
      bar: (width - 16) / each,
      foot: (n) => (isNarrow ? 2 * PANEL + 16 : PANEL) + 74 + Math.floor(n / each) * (BAR + 34),
      bars: (n) => 8 + ((n % each) * (width - 16)) / each,
      height: isNarrow ? 2 * PANEL + 200 : 440,
    }
  }

  // The banks of two words of each of some rows, and for each the number of requests before it.
  const wanted = (start, some, half) =>
    some.flatMap((row) =>
      [0, 1].map((word) => ({row, bank: (start[row] + 2 * half + word) % banks})),
    )
  function stacked(requests) {
    const deep = Array(banks).fill(0)
    return requests.map((request) => ({...request, layer: deep[request.bank]++}))
  }
  const deepest = (requests) => 1 + Math.max(...stacked(requests).map(({layer}) => layer))
  const clocks = (start, some) => deepest(wanted(start, some, 0)) + deepest(wanted(start, some, 1))
  const all = Array.from({length: rows}, (_, row) => row),
    half = rows / 2
  // In an iteration, work-item i stores row i, and loads rows 0 to 7 or 8 to 15, one after another.
  const iterationClocks = (start) =>
    [
      clocks(start, all),
      all.slice(0, half).reduce((sum, row) => sum + clocks(start, [row, row + half]), 0),
    ].map((n) => groups * n)
  const laid = (pitch) => all.map((row) => (pitch * row) % banks)
  const total = (pitch) => iterationClocks(laid(pitch)).reduce((a, b) => a + b)
  const totals = new Map(pitches.map((pitch) => [pitch, total(pitch)]))
  const best = choices.reduce((a, b) => (total(b) < total(a) ? b : a))
  const [fewest, highest] = [Math.min(...totals.values()), Math.max(...totals.values())]

  let pitch = pitches[0]
  let start = laid(pitch)
  let row = 0
  let over = false
  let isNarrow = host.clientWidth < PHONE
  const seen = new Set([pitch]) // the pitches whose bars are drawn
  const bar = make(host, "div", {class: "bar"})
  const asks = make(bar, "div", {class: "asks"})
  const prediction = {
    question: "Guess first: which pitch costs the fewest clocks?",
    choices: choices.map(String),
  }
  const guess = askGuess(asks, host, prediction, (n) => tell(choices[n]))
  const label = make(bar, "label", {}, "Pitch, in words: ")
  const typed = make(label, "input", {type: "number", min: 4, max: most, value: pitch})
  // JupyterLab lets no Enter through to `change`. While a number is typed, one below 4 may be the
  // beginning of a larger one.
  const enter = () => lay(Math.max(4, Math.min(most, Math.round(typed.value) || 4)))
  typed.addEventListener("input", () => {
    if (typed.value < 0 || typed.value >= 4) enter()
  })
  typed.addEventListener("change", enter)
  typed.addEventListener("keydown", ({key}) => {
    if (key === "Enter") enter()
  })
  button(bar, "Lay out by the pitch", () => lay(pitch), "key R")
  const status = make(host, "p", {role: "status"})
  const drawing = make(host, "svg", {
    class: "banks",
    role: "img",
    "aria-label": "32 banks with 16 rows of A, and which rows conflict",
  })
  make(
    host,
    "p",
    {class: "soft hint"},
    "Drag a row to another bank. Or choose it with the up and down arrows, and move it with left " +
      "and right. Each work-item stores a row; eight work-items load one. Waiting requests are " +
      "framed in red.",
  )

  const below = make(host, "p", {class: "soft today"})
  // A warp's load of a word each, in L1: the busiest bank, and four lines of all banks in a clock.
  function tellOfToday() {
    const words = Array.from({length: banks}, (_, thread) => pitch * thread)
    const busiest = Math.max(
      ...words.map((word) => words.filter((other) => (other - word) % banks === 0).length),
    )
    const lines = new Set(words.map((word) => Math.floor(word / banks))).size
    const measured = today[pitch] ? `, ${(today[pitch] * ghz).toFixed(1)} measured` : ""
    below.textContent =
      `The same rule holds on an ${gpu}, whose L1 also reads at most four lines of ${banks} words ` +
      `a clock: ${banks} threads that load a word each, ${pitch} words apart, take ` +
      `${Math.max(busiest, Math.ceil(lines / 4))} clocks${measured}.`
  }

  function lay(value) {
    pitch = typed.value = value
    start = laid(pitch)
    seen.add(pitch)
    draw()
  }
  function tell(choice) {
    const not = choice === best ? "" : `, not ${total(choice)}`
    guess.reveal(String(best), `${total(best)} clocks per iteration${not}.`)
    over = true
    for (const one of pitches) seen.add(one)
    lay(best)
  }
  function move(way) {
    start[row] = (start[row] + way + banks) % banks
    draw()
  }
  function choose(way) {
    row = (row + way + rows) % rows
    draw()
  }
  function drag(event, from, scale) {
    if (event.button) return
    row = from
    const begin = start[row],
      x = event.clientX
    const follow = ({clientX}) =>
      move((((begin + Math.round((clientX - x) / scale)) % banks) + banks - start[row]) % banks)
    const ended = new AbortController()
    const {signal} = ended
    window.addEventListener("pointermove", follow, {signal})
    for (const end of ["pointerup", "pointercancel"])
      window.addEventListener(end, () => ended.abort(), {signal})
    event.preventDefault()
    takeFocus(host)
    draw()
  }

  function draw() {
    const at = layout(isNarrow)
    drawing.setAttribute("viewBox", `0 0 ${at.width} ${at.height}`)
    tellOfToday()
    const [store, load] = iterationClocks(start),
      byPitch = start.every((bank, n) => bank === laid(pitch)[n])
    status.textContent =
      `${byPitch ? `Pitch ${pitch}` : "Your rows"}: an iteration stores in ${store} clocks ` +
      `and loads in ${load}, together ${store + load}.` +
      (over && store + load === fewest ? " No request waits." : "")
    drawing.replaceChildren()
    const box = (x, y, w, h, look) => make(drawing, "rect", {x, y, width: w, height: h, ...look})
    const text = (x, y, words, look = {}) =>
      make(drawing, "text", {x, y, "font-size": 12, ...look}, words)
    const first = row % half
    /** @type {[number[], string][]} */
    const panels = [
      [all, "A store: each of 16 work-items stores two words of its row"],
      [
        [first, first + half],
        `A load: 8 work-items read two words of row ${first}, 8 of row ${first + half}`,
      ],
    ]
    panels.forEach(([some, title], panel) => {
      const [left, top] = at.panels[panel]
      const stack = stacked(wanted(start, some, 0))
      const deep = deepest(stack)
      const up = Math.min(12, 110 / deep)
      const bankX = (bank) => left + bank * at.side
      text(left, top + 14, title, {"font-weight": "bold"})
      text(left + at.wide, top + 34, `clocks: ${deep}`, {"text-anchor": "end"})
      for (let bank = 0; bank < banks; bank++) {
        box(bankX(bank), top + 40, at.side - 2, TOP + rows * HIGH - 36, {
          fill: "var(--ck-faint)",
          opacity: 0.5,
        })
        if (bank % 8 === 0 || bank === banks - 1)
          text(bankX(bank + 0.5), top + TOP + rows * HIGH + 20, bank ? bank : "bank 0", {
            class: "soft",
            "text-anchor": bank ? "middle" : "start",
          })
      }
      for (const {row: from, bank, layer} of stack)
        box(bankX(bank), top + FOOT - (layer + 1) * up, at.side - 3, up - 1.5, {
          fill: series[from % 8],
          class: layer ? "late" : "",
        })
      all.forEach((from) => {
        for (let word = 0; word < 4; word++) {
          const one = box(
            bankX((start[from] + word) % banks),
            top + TOP + from * HIGH,
            at.side - 2,
            HIGH - 2,
            {
              fill: series[from % 8],
              opacity: some.includes(from) && word < 2 ? 1 : 0.35,
              class: `lie${from === row ? " aim" : ""}`,
            },
          )
          make(one, "title", {}, `row ${from}, word ${word}: bank ${(start[from] + word) % banks}`)
          one.addEventListener("pointerdown", (event) =>
            drag(event, from, at.side * drawing.getScreenCTM().a),
          )
        }
      })
    })
    text(8, at.foot(0) - 62, "Clocks of an iteration, by pitch", {class: "soft"})
    pitches.forEach((one, n) => {
      const cost = totals.get(one),
        tall = (BAR * cost) / highest,
        x = at.bars(n),
        foot = at.foot(n)
      const look = !over ? "" : cost === fewest ? "fewest" : cost === highest ? "most" : ""
      text(x + at.bar / 2, foot + 13, one, {
        "text-anchor": "middle",
        "font-weight": one === pitch && byPitch ? "bold" : "normal",
      })
      const [high, color, words, y] = seen.has(one)
        ? [tall, "var(--ck-read)", cost, foot - tall - 4]
        : [BAR, "var(--ck-faint)", "?", foot - BAR / 2 + 4]
      box(x + 2, foot - high, at.bar - 5, high, {fill: color, class: look})
      text(x + at.bar / 2, y, words, {"text-anchor": "middle", "font-size": 11})
      const room = box(x, foot - 74, at.bar, 90, {fill: "transparent", class: "room"})
      room.addEventListener("click", () => {
        lay(one)
        takeFocus(host)
      })
    })
    host.dataset.clocks = store + load
  }
  const keys = {
    ArrowDown: () => choose(1),
    ArrowUp: () => choose(-1),
    ArrowRight: () => move(1),
    ArrowLeft: () => move(-1),
    r: () => lay(pitch),
    Escape: () => leave(host),
  }
  const observer = new ResizeObserver(() => {
    if (isNarrow === host.clientWidth < PHONE) return
    isNarrow = !isNarrow
    draw()
  })
  observer.observe(host)
  ends.push(listenKeys(host, keys), () => observer.disconnect())
  draw()
}
