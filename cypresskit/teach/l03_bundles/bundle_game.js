// The bundle game: what is on the page, and the moves. `levels` and `tables` come from
// bundle_game.py; bundle_rules.js says what a bundle may hold.

import {prepareFigure} from "../../draw/interactive_figure.js"
import {leave, listenKeys, make, makeButton, press, takeFocus} from "../../draw/shell.js"
import {heldBy, judge, SLOTS, unitOf} from "./bundle_rules.js"

/** Bring the game to life. */
export function beginGame(host, data, _place, ends) {
  const {levels, tables, series} = data
  const button = (parent, text, act, title) => makeButton(parent, host, text, act, title)
  prepareFigure(host, data)
  const register = ({register: r, bank}) =>
    (r < 124 ? `R${r}` : r < tables.unstored ? `T${r - 124}` : `V${r - tables.unstored}`) +
    `.${SLOTS[bank]}`
  let level, moves, bundles, where, chosen, slot, hints

  const held = () => heldBy(bundles.at(-2) ?? [])

  // How the open bundle finds its ports with one more card, or why it can't have that.
  function verdict(card, slots) {
    // Card n goes first; where mustPrecede, in an earlier bundle, since this one reads its result.
    for (const [n, mustPrecede] of card.waits) {
      const what = `${level.cards[n].name} of line ${level.cards[n].line}`
      if (!where.has(n))
        return {
          why: mustPrecede
            ? `it needs a result of ${what}, which isn't packed yet`
            : `${what} still has to read what this one overwrites`,
        }
      if (mustPrecede && where.get(n) === bundles.length - 1)
        return {why: `it needs the result of ${what}, which is made in this bundle: close it first`}
    }
    return judge([...bundles.at(-1), [card, slots]], held(), tables)
  }
  const ways = (card) => {
    const sets = tables.sets[card.slots].filter((set) => set.length === card.parts.length)
    return sets.length ? sets : [card.parts.map(({channel}) => channel)]
  }
  const left = () => level.cards.map((_, n) => n).filter((n) => !where.has(n))
  const hint = () =>
    left()
      .map((n) => [n, ways(level.cards[n]).find((set) => !verdict(level.cards[n], set).why)])
      .find(([, set]) => set)

  const bar = make(host, "div", {class: "bar"}),
    status = make(host, "p", {role: "status"})
  const board = make(host, "div", {class: "board"}),
    list = make(board, "div", {class: "list"})
  const middle = make(board, "div"),
    drawing = make(middle, "svg", {viewBox: "0 0 470 252", class: "bundle"})
  const details = make(middle, "p", {"aria-live": "polite"}),
    done = make(board, "div", {class: "done"})
  make(
    host,
    "p",
    {class: "soft"},
    "Letters on a card: the components that the compiler chose for its results. V0, V1 and so " +
      "on: results that only the next bundle reads; the units pass them on (PV, PS), without " +
      "a register. T0, T1, T2, T3: temporary registers, whose values last to the end of the clause.",
  )
  const choices = levels.map((one) => button(bar, one.name, () => start(one)))
  button(bar, "Close bundle", close, "key B")
  button(bar, "Undo", undo, "key U")
  button(bar, "Hint", help, "key H")
  button(bar, "Restart", () => start(level))

  function start(one) {
    level = one
    moves = []
    hints = 0
    list.replaceChildren()
    level.chips = []
    for (const [line, text] of Object.entries(level.lines)) {
      const row = make(list, "div", {class: "row", draggable: true}),
        mine = [...level.cards.keys()].filter((n) => level.cards[n].line === +line)
      const grasp = (target) =>
        level.chips.includes(target) ? level.chips.indexOf(target) : mine.find((n) => !where.has(n))
      row.addEventListener("click", ({target}) => choose(grasp(target) ?? chosen))
      row.addEventListener("dragstart", (event) =>
        grasp(event.target) === undefined ? event.preventDefault() : choose(grasp(event.target)),
      )
      make(row, "span", {class: "ink", style: `background: ${series[level.cards[mine[0]].color]}`})
      make(row, "code", {title: text}, `${line} ${text}`)
      for (const n of mine) {
        const letters = level.cards[n].parts.map(({channel}) => SLOTS[channel]).join("")
        const chip = button(row, letters, () => choose(n))
        level.chips[n] = chip
        Object.assign(chip, {tabIndex: -1, draggable: true})
        chip.addEventListener("dblclick", () => drop())
      }
    }
    press(choices, levels.indexOf(one))
    replay(
      "Choose an operation on the left, then a slot; or drag it there. Keys: arrows choose, " +
        "Enter drops, B closes the bundle, U undoes, H is a hint.",
    )
  }
  // The state is what the moves make of it.
  function replay(words) {
    bundles = [[]]
    where = new Map()
    for (const move of moves) {
      if (move === "close") {
        bundles.push([])
        continue
      }
      bundles.at(-1).push([level.cards[move[0]], move[1]])
      where.set(move[0], bundles.length - 1)
    }
    const rest = left()
    if (!rest.includes(chosen)) chosen = rest.find((n) => n > chosen) ?? rest[0]
    choose(chosen ?? -1)
    say(rest.length ? words : finished())
    host.dataset.bundles = count()
    host.dataset.left = rest.length
  }
  const count = () => bundles.filter((bundle) => bundle.length).length
  const score = () => [`In AMD's order: ${level.compiled}`, `lower bound: ${level.least}`]
  const helped = () => (hints ? `, ${hints} hint${hints > 1 ? "s" : ""}` : "")
  const finished = () =>
    `Done: ${count()} bundles${helped()}. ${score().join(". ")}.` +
    (count() <= level.least ? " No packing has fewer." : "")
  function say(words) {
    status.textContent = words
  }

  function choose(n) {
    chosen = n
    const card = level.cards[n]
    details.textContent = ""
    if (card) {
      slot = (ways(card).find((set) => !verdict(card, set).why) ?? ways(card)[0])[0]
      const parts = card.parts.map(
        ({dest, reads}) =>
          `${dest ? register({register: dest[0], bank: dest[1]}) : "a test"} from ` +
          reads.map((r) => (r.kind === "gpr" ? register(r) : "a constant")).join(", "),
      )
      details.textContent = `Chosen: line ${card.line}, ${card.name}, ${parts.join("; ")}`
    }
    level.chips.forEach((chip, at) => {
      const waits = level.cards[at].waits.some(
        ([m, mustPrecede]) => !where.has(m) || (mustPrecede && where.get(m) === bundles.length - 1),
      )
      chip.className = where.has(at)
        ? "packed"
        : `${at === n ? "chosen" : ""} ${waits ? "waits" : ""}`
      chip.disabled = where.has(at)
    })
    level.chips[n]?.scrollIntoView?.({block: "nearest"})
    draw()
  }
  function drop(to = slot) {
    const card = level.cards[chosen]
    if (!card) return
    const set = ways(card).find((one) => one.includes(to)) ?? ways(card)[0],
      {why} = verdict(card, set)
    if (why) {
      draw(to)
      return say(`No: ${why}.`)
    }
    moves.push([chosen, set])
    replay(`${card.name} of line ${card.line} is in ${set.map((s) => SLOTS[s]).join("")}.`)
  }
  function close() {
    if (!left().length) return say(finished())
    if (!bundles.at(-1).length) return say("No: a bundle has at least one operation.")
    moves.push("close")
    replay(`Bundle ${bundles.length} is closed.`)
  }
  function undo() {
    replay(moves.pop() ? "Undone." : "There is nothing to undo.")
  }
  // One card of the open bundle.
  function takeOut(n) {
    const later = bundles
      .at(-1)
      .map(([card]) => card)
      .find(({waits}) => waits.some(([m]) => m === n))
    if (later)
      return say(
        `No: ${later.name} of line ${later.line} overwrites what this one reads. ` +
          "Remove that first.",
      )
    moves = moves.filter(([m]) => m !== n)
    replay("Removed from the bundle.")
  }
  function help() {
    if (!left().length) return say(finished())
    const found = hint()
    hints++
    draw()
    if (!found) return say("Nothing more fits: close the bundle.")
    choose(found[0])
    slot = found[1][0]
    draw()
    say(
      `${level.cards[found[0]].name} of line ${level.cards[found[0]].line} fits into ` +
        `${found[1].map((s) => SLOTS[s]).join("")}.`,
    )
  }

  // The bundle under way: ports that give a register, wires to the slots that take it; and the
  // bundles so far.
  function draw(refused = -1) {
    drawing.replaceChildren()
    const now = bundles.at(-1),
      judged = now.length ? judge(now, held(), tables) : {ports: Array(12).fill(null), chosen: []}
    const x = (n) => 52 + 84 * n,
      y = (cycle) => 24 + 34 * cycle
    const box = (left, top, w, h, look) =>
      make(drawing, "rect", {x: left, y: top, width: w, height: h, rx: 3, ...look})
    const text = (left, top, words, look = {}) =>
      make(
        drawing,
        "text",
        {x: left, y: top, "font-size": 12, "text-anchor": "middle", ...look},
        words,
      )
    const placed = now.flatMap(([card, slots]) =>
      card.parts.map((part, n) => [card, part, slots[n]]),
    )
    for (let bank = 0; bank < 4; bank++)
      text(x(bank) + 28, 15, `bank ${SLOTS[bank]}`, {class: "soft"})
    placed.forEach(([, part, at], n) => {
      const {words} = unitOf(part, at, held())
      const cycles = tables.swizzles[at === 4 ? "t" : "vector"][judged.chosen[n]]
      for (const [i, word] of words.entries()) {
        if (!word) continue
        const port = `M${x(word.bank) + 56} ${y(cycles[i]) + 13}h${6 + 6 * cycles[i]}`
        const wire = `${port}V128L${x(at) + 14 + 24 * cycles[i]} 158`
        make(drawing, "path", {class: "wire", d: wire})
      }
    })
    for (let port = 0; port < 12; port++) {
      const [cycle, bank] = [Math.floor(port / 4), port % 4],
        given = judged.ports[port]
      box(x(bank), y(cycle), 56, 26, {class: given === null ? "port" : "port given"})
      if (given !== null)
        text(x(bank) + 28, y(cycle) + 17, register({register: given, bank}).slice(0, -2))
      if (!bank) text(24, y(cycle) + 17, `cycle ${cycle}`, {class: "soft"})
    }
    for (let n = 0; n < 5; n++) {
      const [card, part] = placed.find(([, , at]) => at === n) ?? []
      const aimed = n === slot && chosen >= 0 ? " aim" : ""
      const mark = n === refused ? " refused" : aimed
      const field = box(x(n) - 2, 160, 78, 56, {
        class: `slot${card ? " full" : ""}${mark}`,
      })
      if (card) box(x(n) + 2, 206, 70, 6, {fill: series[card.color], "pointer-events": "none"})
      if (card)
        field.addEventListener("pointerdown", () => {
          const {left, right, top, bottom} = field.getBoundingClientRect()
          window.addEventListener(
            "pointerup",
            ({clientX: x, clientY: y}) => {
              if (x < left || x > right || y < top || y > bottom) takeOut(level.cards.indexOf(card))
            },
            {once: true},
          )
        })
      if (card) text(x(n) + 37, 180, card.name.slice(0, 9))
      if (card)
        text(
          x(n) + 37,
          197,
          part.dest ? register({register: part.dest[0], bank: part.dest[1]}) : "test",
          {class: "soft"},
        )
      text(x(n) + 37, 236, SLOTS[n], {"font-weight": "bold", "font-size": 14})
      field.addEventListener("click", () => {
        drop(n)
        takeFocus(host)
      })
      field.addEventListener("dragover", (event) => event.preventDefault())
      field.addEventListener("drop", (event) => {
        event.preventDefault()
        drop(n)
        takeFocus(host)
      })
    }
    const colors = bundles.map((bundle) => {
      const row = Array(5).fill(-1)
      for (const [card, slots] of bundle) for (const at of slots) row[at] = card.color
      return row
    })
    pile(colors.filter((_row, n) => bundles[n].length || n === bundles.length - 1))
  }
  function pile(rows) {
    done.replaceChildren()
    make(done, "div", {class: "count"}, `You: ${count()}${helped()}`)
    const grid = make(done, "div", {class: "pile"})
    rows.forEach((row, n) => {
      const line = make(grid, "div")
      make(line, "span", {}, n + 1)
      for (const color of row)
        make(line, "i", color < 0 ? {} : {style: `background: ${series[color]}`})
    })
    grid.scrollTop = grid.scrollHeight
    const others = make(done, "div", {class: "others"})
    for (const words of score()) make(others, "span", {}, words)
  }
  const step = (way) => {
    const rest = left(),
      at = rest.indexOf(chosen)
    if (rest.length) choose(rest[(at + way + rest.length) % rest.length])
  }
  const aim = (way) => {
    slot = (slot + way + 5) % 5
    draw()
  }
  const keys = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    ArrowRight: () => aim(1),
    ArrowLeft: () => aim(-1),
    Enter: () => drop(),
    b: close,
    u: undo,
    h: help,
    Escape: () => leave(host),
  }
  ends.push(listenKeys(host, keys))
  start(levels[0])
}
