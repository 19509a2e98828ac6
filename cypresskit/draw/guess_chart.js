// A chart on which a reader draws the curve that they expect, by mouse or by keyboard. It is a widget
// whose value is the list of heights (guess_chart.py).
import {followTheme, listenKeys, make} from "./shell.js"

const WIDE = 640
const HIGH = 250
const LEFT = 64
const RIGHT = 616
const TOP = 16
const FOOT = 206
const LABELS = 4 // on the y axis, besides 0
const KEYS = {ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10} // percent of the top
const HELP = "Left and right arrows choose a point, up and down move it."

const STYLE = `
  .cypresskit-guess-chart { display: block; width: ${WIDE}px; max-width: 100%;
    touch-action: none; user-select: none; font: var(--ck-label) var(--ck-sans);
    color: var(--ck-ink); cursor: crosshair }
  .cypresskit-guess-chart text { fill: currentColor }
  .cypresskit-guess-chart .level { stroke: currentColor; opacity: 0.2 }
  .cypresskit-guess-chart .mine { fill: none; stroke: var(--ck-read); stroke-width: 2 }
  .cypresskit-guess-chart circle { fill: var(--ck-read); stroke: var(--ck-read); stroke-width: 2 }
  .cypresskit-guess-chart .untouched { fill: none }
  .cypresskit-guess-chart circle:focus { outline: 2px solid currentColor; outline-offset: 3px }
`

/** The x of each place, on a logarithmic axis if the last is at least 8 times the first. */
function across(places) {
  const [first, last] = [places[0], places.at(-1)]
  const by = first > 0 && last / first >= 8 ? Math.log : Number
  const long = by(last) - by(first) || 1
  return places.map((place) => LEFT + 24 + ((RIGHT - LEFT - 48) * (by(place) - by(first))) / long)
}

function render({model, el}) {
  const places = model.get("places")
  const top = model.get("top")
  const name = model.get("name")
  const xs = across(places)
  const yOf = (height) => FOOT - ((FOOT - TOP) * height) / top
  const style = document.createElement("style")
  style.textContent = STYLE
  el.append(style)
  const svg = make(el, "svg", {
    viewBox: `0 0 ${WIDE} ${HIGH}`,
    class: "cypresskit cypresskit-guess-chart",
  })
  svg.setAttribute("role", "group")
  svg.setAttribute("aria-label", `${name} ${HELP}`)
  for (let n = 0; n <= LABELS; n++) {
    const height = (top * n) / LABELS
    const y = yOf(height)
    make(svg, "line", {class: "level", x1: LEFT, x2: RIGHT, y1: y, y2: y})
    const text = Number(height.toPrecision(4)).toLocaleString("en")
    make(svg, "text", {x: LEFT - 8, y: y + 4, "text-anchor": "end"}, text)
  }
  places.forEach((place, n) => {
    make(svg, "text", {x: xs[n], y: FOOT + 20, "text-anchor": "middle"}, String(place))
  })
  const line = make(svg, "polyline", {class: "mine"})
  const points = places.map((place, n) => {
    const about = {
      role: "slider",
      tabindex: "-1",
      "aria-label": `${name} at ${place}`,
      "aria-valuemin": "0",
      "aria-valuemax": String(top),
      "aria-orientation": "vertical",
    }
    return make(svg, "circle", {...about, cx: xs[n], r: 7})
  })

  const draw = () => {
    const heights = model.get("value")
    line.setAttribute("points", heights.map((height, n) => `${xs[n]},${yOf(height)}`).join(" "))
    points.forEach((point, n) => {
      point.setAttribute("cy", String(yOf(heights[n])))
      point.setAttribute("class", heights[n] ? "" : "untouched")
      point.setAttribute("aria-valuenow", String(Math.round(heights[n])))
    })
  }
  const put = (n, height) => {
    const heights = [...model.get("value")]
    const step = top / 100
    heights[n] = Math.max(0, Math.min(top, Math.round(height / step) * step))
    model.set("value", heights)
    draw()
  }
  /** Set the point nearest to the pointer to the pointer's height. */
  const follow = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY)
    const {x, y} = at.matrixTransform(svg.getScreenCTM().inverse())
    const away = xs.map((place) => Math.abs(place - x))
    const n = away.indexOf(Math.min(...away))
    put(n, (top * (FOOT - y)) / (FOOT - TOP))
    points[n].focus({preventScroll: true})
  }
  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return
    event.preventDefault()
    svg.setPointerCapture(event.pointerId)
    follow(event)
  })
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) follow(event)
  })
  svg.addEventListener("lostpointercapture", () => model.save_changes()) // up, or cancelled
  /** The point that Tab reaches: the one that had the focus last. */
  let here = 0
  points[here].setAttribute("tabindex", "0")
  svg.addEventListener("focusin", ({target}) => {
    points[here].setAttribute("tabindex", "-1")
    here = points.indexOf(/** @type {any} */ (target))
    points[here].setAttribute("tabindex", "0")
  })
  const go = (by) => () => points[here + by]?.focus()
  const move = (height) => () => {
    put(here, height(model.get("value")[here]))
    model.save_changes()
  }
  const steps = Object.entries(KEYS).map(([key, step]) => [
    key,
    move((now) => now + (step * top) / 100),
  ])
  const keys = {ArrowLeft: go(-1), ArrowRight: go(1), Home: move(() => 0), End: move(() => top)}
  const ends = [listenKeys(svg, {...keys, ...Object.fromEntries(steps)}), followTheme(svg)]
  model.on("change:value", draw)
  draw()
  return () => {
    for (const end of ends) end()
    model.off("change:value", draw)
  }
}

export default {render}
