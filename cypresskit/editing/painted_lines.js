// The lines of the editor as they are painted, with the gutters beside them.
//
// All lines are known, but only the visible ones have elements, so a text may be long.
import {parts} from "../draw/il_colors.js"
import {make} from "../draw/shell.js"

const BEYOND = 12 // lines painted above and below the visible ones
const UNSEEN = 700 // pixels, the height before the layout
const TAB = 4
const FAULTS = ["fault", "was-fault"] // the kinds of ranges that underline
const LINE_HIGH = 16 // pixels, of a line

/** A highlight, which all editors of a page share: each adds and removes its own ranges. */
function highlight(name) {
  if (!window.CSS?.highlights) return undefined
  if (!CSS.highlights.has(name)) CSS.highlights.set(name, new Highlight())
  return CSS.highlights.get(name)
}

/** Write a text into an element without replacing its node. */
function writeInto(element, text) {
  if (element.firstChild) element.firstChild.data = text
  else element.textContent = text
}

/** A line, and what is known about it.
 * @returns {Record<string, any>} */
function newLine(text) {
  const wide = text.includes("\t") ? text.length + (TAB - 1) * text.split("\t").length : text.length
  return {text, wide, live: null, price: null, color: undefined, faults: [], row: null}
}

export class PaintedLines {
  /** @param {HTMLElement} parent
   * @param {(line: number) => void} goTo called when a line's gutter is clicked
   * @param {(text: string) => string} beside returns what to paint beside a line, or "" */
  constructor(parent, goTo, beside) {
    this.beside = beside
    this.goTo = goTo
    this.all = [newLine("")]
    this.painted = []
    this.lit = {lit: new Set(), here: new Set()}
    this.widest = 0 // of the lines, in letters
    this.sight = 0 // the height of the visible lines
    this.wide = 0 // a letter's width, once it is known
    this.high = LINE_HIGH
    parent.style.setProperty("--ckw-high", `${LINE_HIGH}px`)
    this.frame = parent
    this.scroll = make(parent, "div", {class: "ckw-scroll"})
    this.gutter = make(this.scroll, "div", {class: "ckw-gutter", "aria-hidden": "true"})
    this.code = make(this.scroll, "div", {class: "ckw-code"})
    this.paint = make(this.code, "div", {class: "ckw-paint", "aria-hidden": "true"})
    this.scroll.addEventListener("scroll", () => this.draw())
    this.gutter.addEventListener("mousedown", (event) => {
      event.preventDefault()
      const top = this.gutter.getBoundingClientRect().top
      this.goTo(Math.min(this.all.length, Math.floor((event.clientY - top) / this.high) + 1))
    })
    this.sized = new ResizeObserver(() => this.resized())
    this.sized.observe(this.scroll)
  }

  /** Keep the caret's line visible when the editor shrinks. */
  resized() {
    const {scroll} = this
    const below = Math.max(0, ...this.lit.here) * this.high - scroll.scrollTop
    const high = scroll.clientHeight
    if (below <= this.sight && below > high) scroll.scrollTop += below - high
    this.sight = high
    this.draw()
  }

  end() {
    this.sized.disconnect()
    for (const line of this.painted) this.remove(line)
    this.painted = []
  }

  /** Show a text. What is known about a line moves with it. */
  write(text) {
    const lines = text.split("\n")
    const {all} = this
    let start = 0
    while (start < all.length && start < lines.length && all[start].text === lines[start]) start++
    let tail = 0
    const most = Math.min(all.length, lines.length) - start
    while (tail < most && all[all.length - 1 - tail].text === lines[lines.length - 1 - tail]) tail++
    const old = all.slice(start, all.length - tail)
    const fresh = lines.slice(start, lines.length - tail).map((line, n) => {
      const {live = null, color, row = null} = old[n] ?? {}
      if (row) this.letter(row, line)
      return {...newLine(line), live, color, row} // without the old text's cost
    })
    for (const line of old.slice(fresh.length)) this.remove(line)
    this.painted = this.painted.map((line) => fresh[old.indexOf(line)] ?? line)
    this.all = all.slice(0, start).concat(fresh, all.slice(all.length - tail))
    this.widest = this.all.reduce((most, {wide}) => Math.max(most, wide), 0)
    this.paint.style.minWidth = `max(100%, calc(${this.widest}ch + 40px))`
    const high = `${this.all.length * this.high + 24}px`
    this.gutter.style.height = high
    this.paint.style.height = high
    this.draw()
  }

  // -- what is known about lines

  /** Faults: [{line, column, length, message}], columns from 1. */
  setFaults(faults) {
    for (const line of this.all) if (line.faults.length) line.faults = []
    for (const fault of faults) {
      const line = this.all[fault.line - 1]
      if (line) line.faults = [...line.faults, fault]
    }
    this.redraw()
  }

  /** The text has changed: show its old faults as stale. */
  markFaultsStale() {
    for (const line of this.all)
      if (line.faults.length) line.faults = line.faults.map((fault) => ({...fault, old: true}))
    this.redraw()
  }

  /** Live registers: [line, count, names]; the highest count fills the bar. */
  setLive(live) {
    this.most = Math.max(1, ...live.map(([, count]) => count))
    for (const line of this.all) line.live = null
    for (const [line, ...rest] of live) if (this.all[line - 1]) this.all[line - 1].live = rest
    this.redraw()
  }

  /** Costs, as shares of the time: [{line, work, price, shown, text}]. */
  setPrices(prices) {
    this.dearest = Math.max(0.01, ...prices.map(({price}) => price))
    for (const line of this.all) line.price = null
    for (const row of prices) if (this.all[row.line - 1]) this.all[row.line - 1].price = row
    this.redraw()
  }

  /** Colors: a Map from a line to the number of its color. */
  setColors(colors) {
    this.all.forEach((line, n) => {
      line.color = colors.get(n + 1)
    })
    this.redraw()
  }

  /** Mark the lines that compile to nothing. */
  setDropped(lines) {
    this.all.forEach((line, n) => {
      line.dropped = lines.has(n + 1)
    })
    this.redraw()
  }

  /** Return a line's cost, or null. */
  priceAt(number) {
    return this.all[number - 1]?.price ?? null
  }

  /** Highlight lines: those of a slot or finding ("lit"), or the caret's ("here"). */
  light(lines, kind = "lit") {
    this.lit[kind] = lines
    this.redraw()
  }

  // -- painting

  /** Paint the visible lines. */
  draw() {
    const top = Math.floor(this.scroll.scrollTop / this.high)
    const count = Math.ceil((this.scroll.clientHeight || UNSEEN) / this.high)
    const first = Math.max(0, Math.min(top, this.all.length - count) - BEYOND)
    const inSight = this.all.slice(first, top + count + BEYOND)
    const stays = new Set(inSight)
    for (const line of this.painted) if (!stays.has(line)) this.remove(line)
    this.gutter.style.paddingTop = `${first * this.high}px`
    this.paint.style.paddingTop = `${first * this.high}px`
    let {firstElementChild: number} = this.gutter
    let {firstElementChild: letters} = this.paint
    inSight.forEach((line, n) => {
      line.row ??= this.makeRow(line)
      const {gutter, paint} = line.row
      if (gutter === number) {
        number = number.nextElementSibling
        letters = letters.nextElementSibling
      } else {
        this.gutter.insertBefore(gutter, number)
        this.paint.insertBefore(paint, letters)
      }
      this.fill(line, first + n + 1)
    })
    this.painted = inSight
    this.first = first + 1
    this.frame.toggleAttribute("data-more", this.outOfSight(this.widest))
  }

  /** Return whether a column is beyond the right edge. */
  outOfSight(column) {
    const {scrollLeft, clientWidth} = this.scroll
    const width = clientWidth - this.gutter.offsetWidth
    return clientWidth > 0 && column * this.letterWidth() > scrollLeft + width
  }

  /** Update what is shown about the visible lines. */
  redraw() {
    this.painted.forEach((line, n) => {
      if (line.row) this.fill(line, this.first + n)
    })
  }

  makeRow(line) {
    const gutter = document.createElement("div")
    gutter.className = "ckw-row"
    const column = (name) => make(gutter, "span", {class: `ckw-${name}`})
    const row = {
      gutter,
      number: column("number"),
      live: column("live ckw-of-live"),
      price: column("price ckw-of-prices"),
      chip: column("chip ckw-of-code"),
      paint: document.createElement("div"),
      beside: document.createElement("i"),
      ranges: [],
      shown: [],
    }
    this.letter(row, line.text)
    row.paint.append(row.beside)
    return row
  }

  /** Write a line's text into its row. It removes no element: that would end the browser's undo
   * while the reader types. */
  letter(row, text) {
    for (const [kind, range] of row.ranges) highlight(`ckw-${kind}`)?.delete(range)
    row.ranges = []
    writeInto(row.paint, text || "\n")
    writeInto(row.beside, this.beside(text))
    if (window.CSS?.highlights)
      for (const {kind, start, end} of parts(text)) this.color(row, kind, start, end)
  }

  color(row, kind, start, end) {
    const node = row.paint.firstChild
    const range = new StaticRange({
      startContainer: node,
      startOffset: start,
      endContainer: node,
      endOffset: end,
    })
    row.ranges.push([kind, range])
    highlight(`ckw-${kind}`)?.add(range)
  }

  remove(line) {
    if (!line.row) return
    for (const [kind, range] of line.row.ranges) highlight(`ckw-${kind}`)?.delete(range)
    line.row.gutter.remove()
    line.row.paint.remove()
    line.row = null
  }

  /** Write what is known about a line into its row, unless it is there already. */
  fill(line, number) {
    const {row, live, price, color, faults} = line
    const lit = Object.keys(this.lit).filter((kind) => this.lit[kind].has(number))
    const shown = [number, live, live && this.most, price, price && this.dearest, color, faults]
    shown.push(lit.join(), line.dropped)
    if (row.shown.length && shown.every((value, n) => value === row.shown[n])) return
    row.shown = shown
    writeInto(row.number, String(number))
    this.fillLive(row.live, live)
    this.fillPrice(row.price, price)
    row.chip.classList.toggle("ckw-dropped", Boolean(line.dropped))
    row.chip.style.background = color === undefined ? "" : `var(--ckw-${color % 8})`
    for (const kind of Object.keys(this.lit)) {
      row.paint.classList.toggle(`ckw-${kind}`, lit.includes(kind))
      row.gutter.classList.toggle(`ckw-${kind}`, lit.includes(kind))
    }
    this.fillFaults(row, faults)
  }

  fillLive(cell, live) {
    const [count, names] = live ?? [0, ""]
    cell.style.setProperty("--part", String(count / this.most || 0))
    cell.toggleAttribute("data-most", count === this.most && count > 1)
    writeInto(cell, count ? String(count) : "")
    cell.title = count ? `${count} registers in use: ${names}` : ""
  }

  fillPrice(cell, price) {
    cell.style.setProperty("--part", String(price ? Math.max(0, price.price / this.dearest) : 0))
    writeInto(cell, price?.shown ?? "")
    cell.title = price?.text ?? ""
  }

  fillFaults(row, faults) {
    row.ranges = row.ranges.filter(([kind, range]) => {
      const isFault = FAULTS.includes(kind)
      if (isFault) highlight(`ckw-${kind}`)?.delete(range)
      return !isFault
    })
    const fresh = faults.filter(({old}) => !old)
    row.gutter.classList.toggle("ckw-bad", fresh.length > 0)
    row.gutter.classList.toggle("ckw-wasbad", faults.length > fresh.length)
    row.gutter.title = fresh[0]?.message ?? ""
    const length = row.paint.firstChild.length
    for (const {column, length: letters, old} of faults) {
      const start = Math.min(column - 1, Math.max(0, length - 1))
      this.color(row, old ? "was-fault" : "fault", start, Math.min(length, start + letters))
    }
  }

  // -- places

  /** Scroll so that a line is the first visible one. */
  toTop(line) {
    this.scroll.scrollTop = (line - 1) * this.high
    this.draw()
  }

  /** Whether all lines are visible, except an empty last one. */
  get allInSight() {
    const {length} = this.all
    return (this.all.at(-1)?.text ? length : length - 1) * this.high <= this.scroll.clientHeight
  }

  /** How many lines are visible. */
  get inSight() {
    return Math.floor(this.scroll.clientHeight / this.high)
  }

  /** Scroll so that a line is visible. */
  show(line) {
    const {scrollTop, clientHeight} = this.scroll
    const top = (line - 1) * this.high
    if (top < scrollTop + 20 || top > scrollTop + clientHeight - 40)
      this.scroll.scrollTop = top - clientHeight / 2
    this.draw()
  }

  /** Scroll the page so that a line is in the window. */
  showOnPage(line) {
    this.all[line - 1]?.row?.gutter.scrollIntoView({block: "nearest", inline: "nearest"})
  }

  /** Scroll sideways so that a column is visible, if possible from the beginning of the line. */
  showColumn(column) {
    const {scroll} = this
    const width = scroll.clientWidth - this.gutter.offsetWidth
    const left = column * this.letterWidth()
    const right = left + 3 * this.letterWidth()
    if (right <= width) scroll.scrollLeft = 0
    else if (left < scroll.scrollLeft) scroll.scrollLeft = left
    else if (right > scroll.scrollLeft + width) scroll.scrollLeft = right - width
  }

  /** Return the line, from 1, and the column, from 0, at a point of the window. */
  at(x, y) {
    const box = this.paint.getBoundingClientRect()
    const line = Math.floor((y - box.top) / this.high) + 1
    return {line, column: Math.floor((x - box.left) / this.letterWidth())}
  }

  /** Return the place of a line and column in the window, at the line's lower edge. */
  placeOf(line, column) {
    const box = this.paint.getBoundingClientRect()
    return {left: box.left + column * this.letterWidth(), top: box.top + line * this.high}
  }

  letterWidth() {
    if (this.wide) return this.wide
    const probe = make(this.paint, "span", {}, "x".repeat(100))
    const wide = probe.getBoundingClientRect().width / 100
    probe.remove()
    this.wide = wide
    return wide || 7.5
  }
}
