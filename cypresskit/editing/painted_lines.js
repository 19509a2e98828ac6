// The lines of the editor as they are painted below its letters, with the gutters beside them.
//
// The text area scrolls, and these lines follow. A text may be long: only the lines in sight have
// elements. A change replaces what is known about a line, and only lines for which something was
// replaced are painted again.
import {matrices, parts} from "../draw/il_colors.js"
import {make} from "../draw/shell.js"

const BEYOND = 12 // lines painted above and below the visible ones
const LINE_HIGH = 16 // pixels, of a line
const HELP_HIGH = 80 // pixels, of a long line of help
const LETTER_WIDE = 7 // pixels, about

// The gutter's columns: name, the statements that it shows, head, and meaning.
const GUTTER = [
  ["number", "", "line", ""],
  ["live", "text", "live", "registers in use at this line; the highest number is bold"],
  ["cost", "costs", "cost %", "percent of the time that would be saved if this line took no time"],
  ["chip", "code", "", ""],
]

/** Fill a cell of a gutter: its text, its title, and the length of its bar. */
function fillCell(cell, {text = "", title = "", part = 0, most = false} = {}) {
  cell.textContent = text
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
  /** @param {HTMLElement} frame
   * @param {object} attributes of the text area
   * @param {(line: number) => void} picked called when a line's gutter is clicked */
  constructor(frame, attributes, picked) {
    this.all = [] // each line's text, and what is known about it
    this.rows = [] // the elements of the visible lines
    this.lit = new Set() // the lines of a slot or finding
    this.held = new Map() // the matrices whose numbers registers hold
    this.here = 0 // the caret's line
    this.frame = frame
    frame.style.setProperty("--ckw-high", `${LINE_HIGH}px`)
    this.heads = make(frame, "div", {class: "ckw-heads", "aria-hidden": "true"})
    for (const [name, , text, title] of GUTTER)
      make(this.heads, "span", {class: `ckw-${name}`, title}, text)
    const lines = make(frame, "div", {class: "ckw-lines"})
    this.gutter = make(lines, "div", {
      class: "ckw-gutter",
      "aria-hidden": "true",
      onmousedown: (event) => {
        event.preventDefault()
        const row = this.rows.find(({gutter}) => gutter.contains(event.target))
        if (row) picked(row.at)
      },
      onwheel: (event) => {
        const {scrollTop} = this.area
        this.area.scrollBy(0, event.deltaY)
        if (this.area.scrollTop !== scrollTop) event.preventDefault()
      },
    })
    const code = make(lines, "div", {class: "ckw-code"})
    this.paint = make(code, "div", {class: "ckw-paint", "aria-hidden": "true"})
    const onscroll = () => this.draw()
    /** @type {HTMLTextAreaElement} */
    this.area = make(code, "textarea", {...attributes, onscroll})
    this.sized = new ResizeObserver(() => this.resize())
    this.sized.observe(this.area)
  }

  end() {
    this.sized.disconnect()
    for (const row of this.rows) unhighlight(row)
  }

  /** Draw at another size. The caret's line isn't lost to a longer line of help. */
  resize() {
    const {scrollTop, clientHeight} = this.area
    const hidden = this.here * LINE_HIGH - scrollTop - clientHeight
    if (hidden > 0 && hidden < HELP_HIGH) this.area.scrollTop += hidden
    this.draw()
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
    const held = matrices(lines)
    if (String([...held]) !== String([...this.held])) this.held = held
    this.draw()
  }

  /** Set what is known about lines: a Map from a line's number to its
   * - live, cost: {text, title, part, most} of its cell in the gutter
   * - color: a number
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

  /** Paint the visible lines. */
  draw() {
    const {scrollTop, scrollLeft, scrollWidth, clientWidth, clientHeight} = this.area
    const top = Math.floor(scrollTop / LINE_HIGH)
    const count = Math.ceil(clientHeight / LINE_HIGH)
    const first = Math.max(0, Math.min(top, this.all.length - count) - BEYOND)
    const inSight = this.all.slice(first, top + count + BEYOND)
    for (const column of [this.gutter, this.paint])
      column.style.top = `${first * LINE_HIGH - scrollTop}px`
    this.paint.style.left = `${-scrollLeft}px`
    while (this.rows.length < inSight.length) this.rows.push(this.makeRow())
    for (const row of this.rows.splice(inSight.length)) {
      unhighlight(row)
      row.gutter.remove()
      row.paint.remove()
    }
    inSight.forEach((line, n) => {
      this.fill(this.rows[n], line, first + n + 1)
    })
    // Where all is in sight, the wheel moves the page.
    this.area.style.overflowY = this.showsAll ? "hidden" : ""
    this.frame.toggleAttribute("data-more", scrollWidth - scrollLeft > clientWidth + 1)
  }

  makeRow() {
    const gutter = make(this.gutter, "div")
    const [number, live, cost, chip] = GUTTER.map(([name, about]) => {
      const statement = about && `ckw-of-${about}`
      return make(gutter, "span", {class: `ckw-${name} ${statement}`})
    })
    const paint = make(this.paint, "div", {}, " ")
    return {gutter, number, live, cost, chip, paint, ranges: []}
  }

  /** Write a line into a row, unless it is there. */
  fill(row, line, number) {
    const {text, live, cost, color, faults = []} = line
    const kinds = [this.here === number && "here", this.lit.has(number) && "lit"]
    const lit = kinds.flatMap((kind) => (kind ? [`ckw-${kind}`] : [])).join(" ")
    const {held} = this
    if (row.line === line && row.at === number && row.lit === lit && row.held === held) return
    Object.assign(row, {line, at: number, lit, held})
    row.gutter.className = `ckw-row ${lit} ${faults.length ? "ckw-bad" : ""}`
    row.paint.className = lit
    row.number.textContent = String(number)
    fillCell(row.live, live)
    fillCell(row.cost, cost)
    row.chip.style.background = color === undefined ? "" : `var(--ckw-${color})`
    unhighlight(row)
    row.paint.textContent = text || "\n"
    for (const {kind, start, end} of parts(text)) {
      const [register] = text.slice(start, end).match(/^r\d+/) ?? []
      highlight(row, held.get(register) ?? kind, start, end)
    }
    for (const {column} of faults) {
      const start = column ? Math.min(column - 1, Math.max(0, text.length - 1)) : text.search(/\S/)
      const [words] = text.slice(start).match(column ? /^[^\s,;]+|^./ : /.*\S/) ?? [" "]
      highlight(row, "fault", start, start + words.length)
    }
  }

  // -- places

  /** Whether all lines are visible, but for an empty one at the end. */
  get showsAll() {
    const count = this.all.length - (this.all.at(-1)?.text ? 0 : 1)
    return count * LINE_HIGH <= this.area.clientHeight
  }

  /** Scroll so that a line is the first visible one, unless all are visible. */
  toTop(line) {
    if (!this.showsAll) this.area.scrollTop = (line - 1) * LINE_HIGH
  }

  /** Scroll so that a line and a column, from 1, are visible in the editor. */
  show(line, column = 1) {
    const {scrollTop, clientHeight, clientWidth} = this.area
    const top = (line - 1) * LINE_HIGH
    if (top < scrollTop + 20 || top > scrollTop + clientHeight - 40)
      this.area.scrollTop = top - clientHeight / 2
    this.area.scrollLeft = column * LETTER_WIDE - 0.7 * clientWidth
    this.draw()
  }

  /** Scroll the page so that a line is in the window. */
  showOnPage(line) {
    this.rows
      .find(({at}) => at === line)
      ?.gutter.scrollIntoView({block: "nearest", inline: "nearest"})
  }

  /** Return a line's text if the frame cuts it off, or "". */
  cutLine(line) {
    const row = this.rows.find(({at}) => at === line)
    return row?.paint.scrollWidth > row?.paint.clientWidth ? row.line.text.trim() : ""
  }
}
