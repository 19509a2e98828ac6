// Where the things of a stage stand. Python draws a stage for a wide page; here the same numbers are
// placed anew: on a narrow page in patches, one below the other, and in time as far as it is zoomed.
//
// A *patch* is a part of the stage, and where it goes; what lies in none stays where it is. A *clock*
// is the stage's axis of time: its ends, and the bands of y in which things stand along it.

const NARROW = window.matchMedia("(max-width: 640px)")
const LINE = 4 // a box that is never wider is a line, and keeps its width
const MARGIN = 8 // of a bar beside its name, and the width of a letter
const LETTER = 6.8
const TICKS = 12 // on the clock there are fewer
const NEAR = 1e-6

/** Ticks between two moments: whole steps of 1, 2 or 5 and zeros.
 * @returns {number[]} */
export function ticksBetween(start, end) {
  let step = 10 ** Math.floor(Math.log10((end - start) / TICKS))
  for (const factor of [2, 2.5, 2, 2]) if ((end - start) / step >= TICKS) step *= factor
  const first = Math.ceil(start / step - NEAR)
  const count = Math.floor(end / step + NEAR) - first + 1
  return Array.from({length: count}, (_, n) => (first + n) * step)
}

const within = (value, [low, high]) => value >= low - NEAR && value <= high + NEAR
const clamp = (value, [low, high]) => Math.max(low, Math.min(high, value))

/** A glyph's property as a column's name. What is one number for all becomes a column. */
function columnOf(glyph, name, source) {
  const {field, value} = glyph[name] ?? {}
  if (field !== undefined || value === undefined) return field
  const column = `${name} ${value}`
  const count = Array.from(Object.values(source.data)[0]).length
  source.data = {...source.data, [column]: Array(count).fill(value)}
  glyph[name] = {field: column}
  return column
}

export class Stage {
  constructor({figure, size, patches, clock}) {
    this.figure = figure
    this.size = size
    this.patches = patches
    this.clock = clock
    this.window = clock ? clock.x : [0, 0] // what is seen of the clock, in the stage's x
    this.isNarrow = false
    this.plans = new Map() // of each source, what says where its things are
    this.aligned = []
    const {x_range: x, y_range: y, aspect_ratio, styles} = figure
    this.wide = {width: x.end, height: y.start, aspect_ratio, styles}
    for (const {glyph, data_source} of figure.renderers) this.plan(glyph, data_source)
  }

  plan(glyph, source) {
    const add = (x, y, w, isLine) => {
      const plans = this.plans.get(source) ?? []
      if (!plans.some((plan) => plan.x === x && plan.y === y && plan.w === w))
        plans.push({x, y, w, isLine})
      this.plans.set(source, plans)
    }
    const column = (name) => columnOf(glyph, name, source)
    if (glyph.type === "Segment") {
      add(column("x0"), column("y0"), undefined, false)
      add(column("x1"), column("y1"), undefined, false)
      this.plans.get(source).isArrow = true
    } else if (!this.plans.get(source)?.isArrow) {
      const isLine = glyph.type === "Rect" && glyph.width.value <= LINE
      const width = glyph.type === "Rect" && !isLine ? column("width") : undefined
      add(column("x"), column("y"), width, isLine)
    }
    if (glyph.type === "Text") this.aligned.push({glyph, source, align: glyph.text_align})
  }

  /** Stand as the page's width asks. Returns whether that has changed. */
  fold() {
    const isNarrow = NARROW.matches && this.patches.length > 0
    if (isNarrow === this.isNarrow) return false
    this.isNarrow = isNarrow
    const {figure, wide} = this
    const [width, height] = isNarrow ? this.size : [wide.width, wide.height]
    figure.x_range.end = width
    figure.y_range.start = height
    figure.aspect_ratio = isNarrow ? width / height : wide.aspect_ratio
    figure.styles = isNarrow ? {"max-width": `${1.2 * width}px`, "min-width": "0"} : wide.styles
    return true
  }

  /** Let texts be aligned as their patch says. */
  align(heldOf) {
    for (const {glyph, source, align} of this.aligned) {
      const {x, y} = this.plans.get(source)[0]
      const data = heldOf(source)
      const n = Array.from(data[x]).findIndex((value) => Number.isFinite(value))
      const patch = n < 0 ? undefined : this.patchAt(data[x][n], data[y][n])
      glyph.text_align = this.isNarrow && patch?.align ? {value: patch.align} : align
    }
  }

  get isPlain() {
    return !this.isNarrow && !this.isZoomed
  }

  get isZoomed() {
    const {clock, window} = this
    return Boolean(clock) && window.some((end, n) => Math.abs(end - clock.x[n]) > NEAR)
  }

  /** The stage's x of a moment that is seen, where it is seen. */
  zoomed(x) {
    const [left, right] = this.clock.x
    const [first, last] = this.window
    return left + ((x - first) * (right - left)) / (last - first)
  }

  isTimed(x, y) {
    if (!this.clock || !within(x, this.clock.x)) return false
    const {bands, foot} = this.clock
    return within(y, [foot, foot]) || bands.some((band) => within(y, band))
  }

  patchAt(x, y) {
    return this.isNarrow
      ? this.patches.find((patch) => within(x, patch.x) && within(y, patch.y))
      : undefined
  }

  /** Where a thing at x and y goes: its x, y and width. Of time that isn't seen, x is NaN. A thing
   * without width that is `kept` stands at the edge then. */
  spot(x, y, width = 0, kept = false) {
    let left = x - width / 2
    let right = x + width / 2
    if (this.isTimed(x, y)) {
      const ends = this.clock.x
      left = this.zoomed(left)
      right = this.zoomed(right)
      const isSeen = right >= ends[0] - NEAR && left <= ends[1] + NEAR
      if (!isSeen && !kept) return [Number.NaN, y, 0.001]
      left = clamp(left, ends)
      right = clamp(right, ends)
    }
    const patch = this.patchAt(x, y)
    if (!patch) return [(left + right) / 2, y, right - left]
    const across = (left + right) / 2 - patch.x[0]
    const down = y - patch.y[0]
    return [patch.to[0] + across * patch.scale, patch.to[1] + down, (right - left) * patch.scale]
  }

  /** A source's data as they are to be drawn. */
  placed(source, held) {
    const plans = this.plans.get(source)
    if (!plans || this.isPlain) return held
    const data = {...held}
    const kept = Boolean(plans.isArrow)
    for (const {x, y, w} of plans) {
      const spots = Array.from(held[x], (at, n) => this.spot(at, held[y][n], held[w]?.[n], kept))
      data[x] = spots.map(([across]) => across)
      data[y] = spots.map(([, down]) => down)
      if (w) data[w] = spots.map(([, , wide]) => Math.max(wide, 0.001))
    }
    if (kept) this.hideUnseen(plans, held, data)
    const names = this.clock?.names.find((entry) => entry.source === source)
    if (names) this.name(names, held, data)
    return data
  }

  /** An arrow of which both ends are on one side of what is seen isn't drawn. */
  hideUnseen([from, to], held, data) {
    if (!this.isZoomed) return
    const [first, last] = this.window
    Array.from(held[from.x]).forEach((start, n) => {
      const end = held[to.x][n]
      if (Math.max(start, end) < first || Math.min(start, end) > last)
        data[from.x][n] = data[to.x][n] = Number.NaN
    })
  }

  /** Write the longest name that fits into what is seen of each bar. */
  name({left, right, texts}, held, data) {
    data.text = Array.from(held.value, (value, n) => {
      const middle = (left[n] + right[n]) / 2
      const [x, , room] = this.spot(middle, held.y[n], right[n] - left[n])
      data.x[n] = x
      return (value && texts[n].find((text) => LETTER * text.length < room - MARGIN)) || ""
    })
  }

  /** See the clock between two of the stage's x. */
  look(first, last) {
    this.window = [first, last]
  }

  /** What the clock's ticks and their names hold, by source. */
  ticks() {
    const {x, seconds, unit, bands, lines, words, foot} = this.clock
    const [left, right] = x
    const secondsAt = (at) => (seconds * (at - left)) / (right - left)
    const moments = ticksBetween(unit * secondsAt(this.window[0]), unit * secondsAt(this.window[1]))
    const across = moments.map((moment) => left + (moment / unit / seconds) * (right - left))
    const all = bands.flatMap(([top, end]) => across.map((at) => [at, (top + end) / 2, end - top]))
    const [at, y, h] = [0, 1, 2].map((n) => all.map((tick) => tick[n]))
    const text = moments.map((moment) => String(Number(moment.toPrecision(10))))
    return new Map([
      [lines, {x: at, y, h}],
      [words, {x: across, y: across.map(() => foot), text}],
    ])
  }
}

/** Call `act` whenever a page becomes narrow or wide. Returns what ends that. */
export function followWidth(act) {
  NARROW.addEventListener("change", act)
  return () => NARROW.removeEventListener("change", act)
}
