// The lines of the editor as they are painted, with the gutters beside them.
//
// A text may be long: only the lines in sight have elements. A change replaces what is known about a
// line, and only lines for which something was replaced are painted again.
import {parts} from "../draw/il_colors.js"
import {make} from "../draw/shell.js"

const BEYOND = 12 // lines painted above and below the visible ones
const UNSEEN = 700 // pixels, the height before the layout
const TAB = 4
const LINE_HIGH = 16 // pixels, of a line
const LETTERS = 100 // whose width is measured
const COLORS = 8

// The gutter's columns, and what they are statements about.
const GUTTER = ["number", "live ckw-of-live", "cost ckw-of-costs", "chip ckw-of-code"]

/** Return how many letters wide a line is, at most. */
function lettersOf(line) {
  const tabs = line.split("\t").length
  return tabs > 1 ? line.length + (TAB - 1) * tabs : line.length
}

/** Write a text into an element without replacing its node. */
function writeInto(element, text) {
  if (element.firstChild) element.firstChild.data = text
  else element.textContent = text
}

/** Fill a cell of a gutter: its text, its title, and the length of its bar. */
function fillCell(cell, {text = "", title = "", part = 0, most = false} = {}) {
  writeInto(cell, text)
  cell.title = title
  cell.style.setProperty("--part", String(part))
  cell.toggleAttribute("data-most", most)
}

/** Color a part of a row, by the highlights that all editors of the page share. */
function highlight(row, kind, startOffset, end) {
  if (!window.CSS?.highlights) return
  const node = row.paint.firstChild
  const endOffset = Math.min(end, node.length)
  const range = new StaticRange({startContainer: node, startOffset, endContainer: node, endOffset})
  const name = `ckw-${kind}`
  if (!CSS.highlights.has(name)) CSS.highlights.set(name, new Highlight())
  CSS.highlights.get(name).add(range)
  row.ranges.push([name, range])
}

function unhighlight(row) {
  for (const [name, range] of row.ranges.splice(0)) CSS.highlights.get(name).delete(range)
}

export class PaintedLines {
  /** @param {HTMLElement} parent
   * @param {(line: number) => void} goTo called when a line's gutter is clicked */
  constructor(parent, goTo) {
    this.all = [] // each line's text, and what is known about it
    this.rows = [] // the elements of the visible lines
    this.lit = new Set() // the lines of a slot or finding
    this.here = 0 // the caret's line
    this.widest = 0 // of the lines, in letters
    this.frame = parent
    parent.style.setProperty("--ckw-high", `${LINE_HIGH}px`)
    this.scroll = make(parent, "div", {class: "ckw-scroll", onscroll: () => this.draw()})
    this.gutter = make(this.scroll, "div", {
      class: "ckw-gutter",
      "aria-hidden": "true",
      onmousedown: (event) => {
        event.preventDefault()
        goTo(Math.min(this.all.length, this.at(event).line))
      },
    })
    this.code = make(this.scroll, "div", {class: "ckw-code"})
    this.paint = make(this.code, "div", {class: "ckw-paint", "aria-hidden": "true"})
    this.sized = new ResizeObserver(() => this.draw())
    this.sized.observe(this.scroll)
  }

  end() {
    this.sized.disconnect()
    for (const row of this.rows) unhighlight(row)
  }

  /** Show a text. What is known about a line moves with it; a changed line loses its cost. */
  write(text) {
    const lines = text.split("\n")
    const {all} = this
    let start = 0
    while (start < all.length && all[start].text === lines[start]) start++
    let tail = 0
    const most = Math.min(all.length, lines.length) - start
    while (tail < most && all.at(-1 - tail).text === lines.at(-1 - tail)) tail++
    const old = all.slice(start, all.length - tail)
    const changed = lines.slice(start, lines.length - tail).map((line, n) => {
      const {live, color} = old[n] ?? {}
      return {text: line, live, color}
    })
    this.all = [...all.slice(0, start), ...changed, ...all.slice(all.length - tail)]
    this.widest = lines.reduce((most, line) => Math.max(most, lettersOf(line)), 0)
    this.paint.style.minWidth = `max(100%, calc(${this.widest}ch + 40px))`
    for (const column of [this.gutter, this.paint])
      column.style.height = `${lines.length * LINE_HIGH + 24}px`
    this.draw()
  }

  /** Set what is known about lines: a Map from a line's number to its
   * - live, cost: {text, title, part, most} of its cell in the gutter
   * - color: a number
   * - dropped: true if it compiles to nothing
   * - faults: [{column}] at whose words they are; without a column, all of the line is */
  know(kind, about) {
    this.all = this.all.map((line, n) => {
      const known = about.get(n + 1)
      return line[kind] === known ? line : {...line, [kind]: known}
    })
    this.draw()
  }

  light(lines) {
    this.lit = lines
    this.draw()
  }

  // -- painting

  /** Paint the visible lines. */
  draw() {
    const {scrollTop, clientHeight} = this.scroll
    const top = Math.floor(scrollTop / LINE_HIGH)
    const count = Math.ceil((clientHeight || UNSEEN) / LINE_HIGH)
    const first = Math.max(0, Math.min(top, this.all.length - count) - BEYOND)
    const inSight = this.all.slice(first, top + count + BEYOND)
    for (const column of [this.gutter, this.paint])
      column.style.paddingTop = `${first * LINE_HIGH}px`
    while (this.rows.length < inSight.length) this.rows.push(this.makeRow())
    for (const row of this.rows.splice(inSight.length)) {
      unhighlight(row)
      row.gutter.remove()
      row.paint.remove()
    }
    inSight.forEach((line, n) => {
      this.fill(this.rows[n], line, first + n + 1)
    })
    this.frame.toggleAttribute("data-more", this.outOfSight(this.widest))
  }

  makeRow() {
    const gutter = make(this.gutter, "div")
    const [number, live, cost, chip] = GUTTER.map((name) =>
      make(gutter, "span", {class: `ckw-${name}`}),
    )
    const paint = make(this.paint, "div", {}, " ")
    return {gutter, number, live, cost, chip, paint, ranges: []}
  }

  /** Write a line into a row, unless it is there. It removes no element: that would end the browser's undo while the
   * reader types. */
  fill(row, line, number) {
    const {text, live, cost, color, dropped = false, faults = []} = line
    const kinds = [this.here === number && "here", this.lit.has(number) && "lit"]
    const lit = kinds.flatMap((kind) => (kind ? [`ckw-${kind}`] : [])).join(" ")
    if (row.line === line && row.at === number && row.lit === lit) return
    Object.assign(row, {line, at: number, lit})
    row.gutter.className = `ckw-row ${lit} ${faults.length ? "ckw-bad" : ""}`
    row.paint.className = lit
    writeInto(row.number, String(number))
    fillCell(row.live, live)
    fillCell(row.cost, cost)
    row.chip.classList.toggle("ckw-dropped", dropped)
    row.chip.style.background = color === undefined ? "" : `var(--ckw-${color % COLORS})`
    unhighlight(row)
    writeInto(row.paint, text || "\n")
    for (const {kind, start, end} of parts(text)) highlight(row, kind, start, end)
    for (const {column} of faults) {
      const start = column ? Math.min(column - 1, Math.max(0, text.length - 1)) : text.search(/\S/)
      const [words] = text.slice(start).match(column ? /^[^\s,;]+|^./ : /.*\S/) ?? [" "]
      highlight(row, "fault", start, start + words.length)
    }
  }

  // -- places

  /** Scroll so that a line is the first visible one, unless all are visible. */
  toTop(line) {
    const count = this.all.length - (this.all.at(-1).text ? 0 : 1)
    if (count > this.inSight) this.scroll.scrollTop = (line - 1) * LINE_HIGH
  }

  /** How many lines are visible. */
  get inSight() {
    return Math.floor(this.scroll.clientHeight / LINE_HIGH)
  }

  /** Scroll so that a line is visible in the editor. */
  show(line) {
    const {scrollTop, clientHeight} = this.scroll
    const top = (line - 1) * LINE_HIGH
    if (top < scrollTop + 20 || top > scrollTop + clientHeight - 40)
      this.scroll.scrollTop = top - clientHeight / 2
    this.draw()
  }

  /** Scroll the page so that a line is in the window. */
  showOnPage(line) {
    const row = this.rows.find(({number}) => number.textContent === String(line))
    row?.gutter.scrollIntoView({block: "nearest", inline: "nearest"})
  }

  /** Return whether a column is beyond the right edge. */
  outOfSight(column) {
    const {scrollLeft, clientWidth} = this.scroll
    const width = clientWidth - this.gutter.offsetWidth
    return clientWidth > 0 && column * this.letter > scrollLeft + width
  }

  /** Scroll sideways so that a column is visible, if possible from the beginning of the line. */
  showColumn(column) {
    const {scroll} = this
    const width = scroll.clientWidth - this.gutter.offsetWidth
    const left = column * this.letter
    const right = left + 3 * this.letter
    if (right <= width) scroll.scrollLeft = 0
    else if (left < scroll.scrollLeft) scroll.scrollLeft = left
    else if (right > scroll.scrollLeft + width) scroll.scrollLeft = right - width
  }

  /** Return the line, from 1, and the column, from 0, at the mouse. */
  at({clientX, clientY}) {
    const {left, top} = this.paint.getBoundingClientRect()
    const line = Math.floor((clientY - top) / LINE_HIGH) + 1
    return {line, column: Math.floor((clientX - left) / this.letter)}
  }

  /** A letter's width, in pixels, once there is a layout. */
  get letter() {
    if (this.wide) return this.wide
    const probe = make(this.paint, "span", {}, "x".repeat(LETTERS))
    this.wide = probe.getBoundingClientRect().width / LETTERS
    probe.remove()
    return this.wide || 7.5
  }
}
