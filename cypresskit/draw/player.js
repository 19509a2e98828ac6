// The player's half that runs in the browser: the body of one CustomJS, run once when the document is ready.
//
// Arguments: root (the layout), play, back, forward, slider, speed (widgets), caption, live (Divs), figures, count,
// start, captions (one text per frame), marks (frames to jump to), tracks, listings, inks, fitted, step. A track is a
// column of a source over time: {source, column, changes, text, prefix, names, few}, where changes is a source with the
// columns frame, cell and value; it is spread out once, from the column as it stands, into an array of frames x cells.
// Everything is wired here, so no message to Python is ever needed.
const view = cb_context.index.get_one(root)
const el = view.el
const child = (model) => cb_context.index.get_one(model)

// Five characters or so for any number; the same rule as short() in player.py.
const short = (v) => {
  const a = Math.abs(v)
  if (!Number.isFinite(v)) return Number.isNaN(v) ? "NaN" : v > 0 ? "inf" : "-inf"
  if (Number.isInteger(v) && a < 1e5) return String(v === 0 ? 0 : v)
  if (a >= 1e5 || a < 1e-3) return v.toExponential(0).replace("e+", "e")
  return v.toFixed(a < 1 ? 3 : a < 10 ? 2 : a < 100 ? 1 : 0).replace("0.", a < 1 ? "." : "0.")
}

// Bokeh's arrays know their shape and refuse to be cut; these are the plain ones.
const kinds = {float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array, uint16: Uint16Array}

for (const track of tracks) {
  const first = track.source.data[track.column]
  const {frame: at, cell, value} = track.changes.data
  const size = first.length
  const all = new kinds[first.dtype](count * size)
  all.set(first)
  for (let frame = 1, next = 0; frame < count; frame++) {
    all.copyWithin(frame * size, (frame - 1) * size, frame * size)
    for (; next < at.length && at[next] === frame; next++) all[frame * size + cell[next]] = value[next]
  }
  Object.assign(track, {all, size})
}

let frame = -1
let timer = null
let due = 0
let shown = 0
const still = window.matchMedia("(prefers-reduced-motion: reduce)")

function list({lines, window}, current) {
  const from = Math.max(0, Math.min(current[0] - 1 - Math.floor(window / 3), lines.length - window))
  const rows = lines.slice(from, from + window).map((text, i) => {
    const n = from + i + 1
    const now = current.includes(n)
    return `<div class="${now ? "now" : "row"}"><span class="n">${now ? "&#9654;" : ""} ${n}</span>${text}</div>`
  })
  return `<div class="code">${rows.join("")}</div>`
}

const signs = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
const words = () => captions[frame].replace(/<[^>]*>/g, " ").replace(/&[lga][tm]p?;/g, (sign) => signs[sign])

// A frame shown quietly is not read out: twenty a second would be noise.
function show(k, quiet) {
  k = Math.max(0, Math.min(count - 1, k))
  if (k === frame) return
  frame = k
  const changed = new Map()
  for (const track of tracks) {
    const {source, column, size, all, text, prefix, names, few} = track
    const now = all.slice(k * size, (k + 1) * size)
    const before = source.data[column]
    let same = before.length === size
    for (let i = 0; same && i < size; i++) same = Object.is(before[i], now[i])
    if (same && track.drawn) continue
    track.drawn = true
    if (!changed.has(source)) changed.set(source, {...source.data})
    changed.get(source)[column] = now
    if (text) changed.get(source)[text] = Array.from(now, (v) => names.length ? names[v] : prefix === "" ? short(v) : v < 0 ? "" : prefix + v)
    if (few) {
      const data = changed.get(source), at = [...now.keys()].filter((i) => data[text][i] !== "")
      changed.set(few, {x: at.map((i) => data.x[i]), y: at.map((i) => data.y[i]), [text]: at.map((i) => data[text][i])})
    }
  }
  for (const [source, data] of changed) source.data = data
  slider.value = k
  caption.text = captions[k]
  for (const listing of listings) listing.place.text = list(listing, listing.current[k])
  for (const figure of figures) child(figure).el.setAttribute("aria-label", `${figure.html_attributes["aria-label"]}. ${words()}`)
  if (!quiet) live.text = words()
  handle()
  shown++
  el.dataset.frame = k
  el.dataset.shown = shown
}

// The slider has no name of its own for a screen reader, and keeps setting its bare number as what is read out.
const grip = child(slider).el.shadowRoot.querySelector(".noUi-handle")
function handle() {
  const words = `${step.toLowerCase()} ${frame + 1} of ${count}`
  if (grip.getAttribute("aria-valuetext") !== words) grip.setAttribute("aria-valuetext", words)
}
grip.setAttribute("aria-label", step)
child(speed).el.shadowRoot.querySelector("select").setAttribute("aria-label", "Speed")
new MutationObserver(handle).observe(grip, {attributes: true, attributeFilter: ["aria-valuetext"]})

function stop() {
  if (timer !== null) clearTimeout(timer)
  timer = null
  play.label = still.matches ? "Step" : "Play"
  el.dataset.playing = ""
}

// Frames are due at fixed times, so a late frame doesn't delay those after it; none is ever left out.
function tick() {
  if (!el.isConnected || frame >= count - 1) { stop(); live.text = words(); return }
  show(frame + 1, true)
  due = Math.max(due + 1000 / Number(speed.value), performance.now() - 200)
  timer = setTimeout(tick, Math.max(0, due - performance.now()))
}

function toggle() {
  if (timer !== null) { stop(); live.text = words(); return }
  if (still.matches) { show(frame + 1); return }
  if (frame >= count - 1) show(0, true)
  play.label = "Pause"
  el.dataset.playing = "yes"
  due = performance.now() + 1000 / Number(speed.value)
  timer = setTimeout(tick, 1000 / Number(speed.value))
}

function go(k) { stop(); show(k) }
const mark = (way) => {
  const found = way > 0 ? marks.find((m) => m > frame) : marks.findLast((m) => m < frame)
  return found ?? (way > 0 ? count - 1 : 0)
}

play.on_event("button_click", toggle)
back.on_event("button_click", () => go(frame - 1))
forward.on_event("button_click", () => go(frame + 1))
slider.properties.value.change.connect(() => { if (slider.value !== frame) go(slider.value) })

// In a notebook or a lesson keys count only while the focus is in the player; a saved page has nothing else to use them.
// A control keeps the keys that it uses itself. JupyterLab looks for its shortcuts before the page's elements see a key;
// the attribute tells it to leave this element's keys alone.
const keys = {
  " ": toggle, ArrowRight: () => go(frame + 1), ArrowLeft: () => go(frame - 1), Home: () => go(0),
  End: () => go(count - 1), PageDown: () => go(mark(1)), PageUp: () => go(mark(-1)),
}
el.setAttribute("data-lm-suppress-shortcuts", "true")
function press(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return
  const target = event.composedPath()[0]
  if (target.matches("select, input, textarea") || (target.matches("button") && event.key === " ")) return
  if (target.matches(".noUi-handle") && event.key !== " ") return
  event.preventDefault()
  event.stopPropagation()
  keys[event.key]()
}
for (const place of el.closest(".cypresskit-player") ? [el] : [el, document.body]) place.addEventListener("keydown", press)
el.addEventListener("pointerdown", (event) => {
  if (!event.composedPath()[0].matches("button, select, input, .noUi-handle")) setTimeout(() => el.focus({preventScroll: true}))
})

// Light or dark: JupyterLab says so on <body>; a plain page follows the reader's setting. Colours on a canvas can't be
// CSS variables, so each ink is looked up and handed to its glyph.
const wish = window.matchMedia("(prefers-color-scheme: dark)")
function colour() {
  const lab = document.body.dataset.jpThemeLight
  el.toggleAttribute("data-dark", lab === undefined ? wish.matches : lab === "false")
  const style = getComputedStyle(el)
  for (const [model, property, token] of inks) {
    const value = style.getPropertyValue(`--ck-${token}`).trim()
    model[property] = typeof model[property] === "string" ? value : {value}
  }
}
const scale = Number(getComputedStyle(el).getPropertyValue("--ck-scale")) || 1
// Bokeh clears its canvas half a pixel off, so what it drew before it knew its width stays at the edge: wiped off here.
for (const figure of figures) {
  figure.properties.inner_width.change.connect(() => {
    const {canvas, ctx} = child(figure).canvas_view.primary
    ctx.save()
    ctx.resetTransform()
    ctx.clearRect(0, 0, canvas.width, canvas.height)
    ctx.restore()
  })
}
for (const [figure, glyph, part] of fitted) {
  const fit = () => {
    const cell = figure.inner_width / Math.abs(figure.x_range.end - figure.x_range.start)
    if (cell > 0) glyph.text_font_size = {value: `${Math.max(8, Math.min(13 * scale, part * cell)).toFixed(1)}px`}
  }
  figure.properties.inner_width.change.connect(fit)
  fit()
}
wish.addEventListener("change", colour)
still.addEventListener("change", stop)
const watch = new MutationObserver(colour)
watch.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"]})

// The tallest caption has room, so that the picture below it keeps its place.
const size = (text) => text.length + 100 * text.split("<br>").length
const longest = captions.reduce((a, b) => (size(b) > size(a) ? b : a))
const box = child(caption).el
const probe = box.shadowRoot.querySelector(".bk-clearfix").cloneNode()
Object.assign(probe.style, {position: "absolute", visibility: "hidden"})
probe.innerHTML = longest
box.shadowRoot.append(probe)
new ResizeObserver(() => { box.style.minHeight = `${probe.offsetHeight}px` }).observe(box)

colour()
stop()
show(start, true)
el.dataset.ready = "yes"
