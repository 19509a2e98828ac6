// The player's half that runs in the browser: a function's body, run once for each player when its figures are drawn.
//
// `el` is the element with the player in its shadow root, `index` finds the view of a model. `told` is what Python says
// about the picture; see Player and Sheet. A track is a column of a source over time: its changes (arrays frame, cell and
// value) are spread out once, from the column as it stands, into an array of frames x cells. No message to Python is ever
// needed.
const {label, figures, scenes, captions, marks, tracks, listing, inks, fitted, step, hint, unguessed, truth, right,
  choices, picks, about, goes, heads, dials, tells, begins} = told
const child = (model) => index.get_one(model)
const place = el.closest(".cypresskit-player")
const part = Object.fromEntries([...el.shadowRoot.querySelectorAll("[data-part]")].map((one) => [one.dataset.part, one]))
const {play, slider, speed, asked} = part
const count = captions.length

// What is written already stays: a browser would lay it out anew.
const texts = new Map()
function write(box, text) {
  if (texts.get(box) !== text) box.innerHTML = text
  texts.set(box, text)
}
// One of several buttons: it looks pressed; and what a click on one does with its number. After the mouse the keys are
// the picture's.
const press = (group, n) => [...group.children].forEach((one, k) => one.setAttribute("aria-pressed", k === n))
const offer = (group, act) => [...group.children].forEach((one, n) => one.addEventListener("click", ({detail}) => {
  act(n)
  if (detail) el.focus({preventScroll: true})
}))

// Bokeh's arrays know their shape and refuse to be cut; these are the plain ones.
const kinds = {float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array, uint16: Uint16Array}

for (const track of tracks) {
  const first = track.source.data[track.column]
  const {frame: at, cell, value} = track.changes
  const size = first.length
  const all = new kinds[first.dtype](count * size)
  all.set(first)
  for (let frame = 1, next = 0; frame < count; frame++) {
    all.copyWithin(frame * size, (frame - 1) * size, frame * size)
    for (; next < at.length && at[next] === frame; next++) all[frame * size + cell[next]] = value[next]
  }
  Object.assign(track, {all, size, written: new Map(track.texts)})
}

// Bokeh has four more of every glyph, for what is selected, or isn't, or is muted, or drawn in haste. Nothing ever is, so
// they needn't be told of every frame. And it keeps an empty element where each glyph is, by a style sheet written anew
// whenever that is painted.
const nothing = () => {}
for (const figure of figures) for (const view of child(figure).renderer_views.values()) {
  view.update_position = nothing
  for (const glyph of [view.selection_glyph, view.nonselection_glyph, view.muted_glyph, view.decimated_glyph])
    if (glyph) Object.assign(glyph, {set_data: nothing, set_visuals: nothing, after_visuals: nothing, map_data: nothing})
}

let frame = -1, timer = null, due = 0, shown = 0
let [first, frames] = scenes[0]  // of the scene that is shown
let motion = 0  // counts what was set in motion: only the latest goes on
let pick = null  // the key that is chosen
let guessed = null
const still = window.matchMedia("(prefers-reduced-motion: reduce)")

// The lines of a listing round the current one.
function list({lines}, current, window = 13) {
  const from = Math.max(0, Math.min(current - 1 - Math.floor(window / 3), lines.length - window))
  const rows = lines.slice(from, from + window).map((text, i) => {
    const n = from + i + 1, now = n === current
    return `<div data-line="${n}" class="${now ? "now" : "row"}"><span class="n">${now ? "&#9654;" : ""} ${n}</span>${text}</div>`
  })
  return rows.join("")
}

// What a screen reader hears of HTML, and of the caption.
function plain(html) {
  const text = document.createElement("template")
  text.innerHTML = html.replaceAll("<br>", " ")
  return text.content.textContent
}
const words = () => plain(captions[frame])

// What moves goes from one frame's places to the next one's; what comes from nowhere, or goes there, jumps.
const movers = new Map()
for (const track of tracks) if (track.moves) movers.set(track.source, [...(movers.get(track.source) ?? []), track])

function between(from, to, part, changed = new Map()) {
  for (const [source, list] of movers) for (const {column, size, all} of list) {
    const a = all.subarray(from * size, (from + 1) * size), b = all.subarray(to * size, (to + 1) * size)
    let now = null
    for (let i = 0; i < size; i++) {
      const way = b[i] - a[i]
      if (way) (now ??= b.slice())[i] = a[i] + way * part
    }
    if (now) changed.set(source, {...changed.get(source) ?? source.data, [column]: now})
  }
  for (const [source, data] of changed) source.data = data
}

// At most a fifth of the time is spent on painting, however slow the browser.
function travel(from, to, time) {
  const mine = motion, begin = performance.now(), even = time < 180
  let last = begin
  painting = 0
  const move = () => {
    if (mine !== motion || !el.isConnected) return
    const now = performance.now(), part = Math.min(1, (now - begin) / time)
    if (now - last > Math.max(28, 5 * painting) || part === 1) {
      last = now
      painting = 0
      between(from, to, even ? part : part * part * (3 - 2 * part))
    }
    if (part < 1) requestAnimationFrame(move)
  }
  requestAnimationFrame(move)
}

// Bokeh paints a figure anew if anything in it has changed. Here what lies one upon the other and stands still is painted
// once more on a canvas of its own, and then copied from there, until it changes.
const LEVELS = ["image", "underlay", "glyph", "guide", "annotation"]
let painting = 0  // milliseconds
for (const figure of figures) {
  const plot = child(figure), paint = plot._actual_paint
  let stale = null  // what has changed since the figure was painted; null for all of it
  plot._actual_paint = () => {
    const begin = performance.now()
    stale = plot._invalidate_all ? null : new Set(plot._invalidated_painters)
    paint.call(plot)
    painting += performance.now() - begin
  }
  const stills = []
  let last = null
  for (const level of LEVELS) for (const view of plot.computed_renderer_views) if (view.model.level === level) {
    if (!view.glyph || movers.has(view.model.data_source)) last = null
    else if (last) last.push(view)
    else stills.push(last = [view])
  }
  for (const views of stills) {
    const paints = views.map((view) => view.paint.bind(view))
    let copy = null, kept = false
    const draw = (ctx) => { for (const paint of paints) { ctx.save(); paint(ctx); ctx.restore() } }
    const cost = views.reduce((all, {model, glyph}) => all + model.data_source.length * (glyph.model.type === "Text" ? 8 : 1), 0)
    if (cost < 100) continue
    for (const view of views) view.paint = () => {}
    views[0].paint = (ctx) => {
      if (!stale || views.some((view) => stale.has(view))) { kept = false; return draw(ctx) }
      if (!kept) {
        copy ??= plot.canvas_view.create_layer()
        copy.resize(ctx.layer.bbox.width, ctx.layer.bbox.height)
        const on = copy.prepare()
        on.beginPath()
        on.rect(...plot.frame.bbox.args)
        on.clip()  // as Bokeh does: edges look as they do there
        draw(on)
        copy.finish()
        kept = true
      }
      ctx.layer.undo_transform(() => ctx.drawImage(copy.canvas, 0, 0))
    }
  }
}

// What is chosen is lit wherever it is, and that may change with the frame.
function light() {
  for (const {source, on} of picks) {
    const {key, lit} = source.data
    const now = Array.from(key, (k) => k === pick ? on : 0)
    if (now.some((v, i) => v !== lit[i])) source.data = {...source.data, lit: now}
  }
}

const said = new Map(about), scenesOf = new Map(goes)
function say() {
  const told = said.get(pick)
  write(part.chosen, (Array.isArray(told) ? told.findLast(([from]) => from <= frame)?.[1] : told) ?? `<span class="soft">Click anything to keep it highlighted.</span> ${hint}`)
}
function choose(key) {
  pick = said.has(key) ? key : null
  light()
  say()
  el.dataset.pick = pick ?? ""
  if (pick !== null) part.live.textContent = part.chosen.textContent
}
// What was clicked, or chosen by keys and then Enter, may have a scene of its own, or be the way to another picture,
// which whoever is around this one knows. Whether it was the latter.
function enter() {
  if (scenesOf.has(pick)) change(scenesOf.get(pick))
  const detail = {key: pick, frame}
  return !place.dispatchEvent(new CustomEvent("cypresskit-enter", {bubbles: true, cancelable: true, detail}))
}

// A frame shown quietly is not read out: twenty a second would be noise. What moves takes `time` milliseconds.
function show(k, quiet, time) {
  k = Math.max(first, Math.min(first + frames - 1, k))
  if (k === frame) return
  const from = frame
  frame = k
  motion++
  const changed = new Map()
  for (const track of tracks) {
    const {source, column, size, all, text, written} = track
    const now = all.slice(k * size, (k + 1) * size), before = source.data[column]
    if (track.drawn && now.every((v, i) => Object.is(before[i], v))) continue
    track.drawn = true
    if (!changed.has(source)) changed.set(source, {...source.data})
    changed.get(source)[column] = now
    if (text) changed.get(source)[text] = Array.from(now, (value) => written.get(value))
  }
  const moves = time && from >= first && movers.size && !still.matches
  between(moves ? from : k, k, 0, changed)
  if (moves) travel(from, k, time)
  if (pick !== null) { light(); say() }
  slider.value = k - first
  slider.setAttribute("aria-valuetext", `${step.toLowerCase()} ${k - first + 1} of ${frames}`)
  write(part.caption, captions[k])
  if (truth) ask(k > first && guessed === null)  // later frames give the answer away
  if (part.listing) write(part.listing, list(listing, listing.current[k]))
  for (const figure of figures) child(figure).el.setAttribute("aria-label", `${figure.html_attributes["aria-label"]}. ${words()}`)
  if (!quiet) part.live.textContent = words()
  turn()
  shown++
  el.dataset.frame = k
  el.dataset.shown = shown
}

// Dials: what they are set to, together, is a frame; and a frame that is shown turns them.
const turned = [...el.shadowRoot.querySelectorAll("label")].map((one) => one.children)
const strides = dials.map((_, n) => dials.slice(0, n).reduce((all, [, values]) => all * values.length, 1))
for (const [, dial] of turned)
  dial.addEventListener("input", () => show(turned.reduce((at, [, {value}], n) => at + value * strides[n], 0)))
function turn() {
  dials.forEach(([name, values], n) => {
    const [words, dial] = turned[n], at = Math.floor(frame / strides[n]) % values.length
    dial.value = at
    dial.setAttribute("aria-valuetext", values[at])
    words.replaceChildren(`${name}: `, Object.assign(document.createElement("b"), {textContent: values[at]}))
  })
}

function stop() {
  if (timer !== null) clearTimeout(timer)
  timer = null
  play.textContent = still.matches ? "Step" : "Play"
  el.dataset.playing = ""
}
// Frames are due at fixed times, so a late frame doesn't delay those after it; none is ever left out.
const period = () => 1000 / Number(speed.value)
const over = () => frame >= first + frames - 1
function tick() {
  if (!el.isConnected || over()) { stop(); part.live.textContent = words(); reveal(); return }
  show(frame + 1, true, period())
  due = Math.max(due + period(), performance.now() - 200)
  timer = setTimeout(tick, Math.max(0, due - performance.now()))
}

function toggle() {
  if (dials.length) return
  el.focus({preventScroll: true})
  if (timer !== null) { stop(); part.live.textContent = words(); return }
  if (still.matches) { show(frame + 1); return }
  if (over()) show(first, true)
  start()
}
function start() {
  play.textContent = "Pause"
  el.dataset.playing = "yes"
  due = performance.now() + period()
  timer = setTimeout(tick, period())
}

function go(k) { stop(); show(k, false, Math.abs(k - frame) === 1 ? 220 : 0); if (over()) reveal() }
const mark = (way) => {
  const [last, found] = [first + frames - 1, way > 0 ? marks.find((m) => m > frame) : marks.findLast((m) => m < frame)]
  return Math.max(first, Math.min(last, found ?? (way > 0 ? last : first)))
}

play.addEventListener("click", toggle)
part.back.addEventListener("click", () => go(frame - 1))
part.forward.addEventListener("click", () => go(frame + 1))
slider.addEventListener("input", () => { stop(); show(slider.valueAsNumber + first); if (over()) reveal() })
// What is drawn anew by controls shows the scene that was shown before.
const around = place.closest(".cypresskit-controls")
function change(scene) {
  if (around) around.dataset.scene = scene
  const at = frame - first
  stop();
  [first, frames] = scenes[scene]
  slider.max = frames - 1
  press(part.scene, scene)
  show(first + Math.min(at, frames - 1))
}
offer(part.scene, change)

// A guess, and at the end what was recorded.
const question = asked.innerHTML
// A button that hides would leave the focus to the page, and the next key with it.
function release() {
  if (part.answers.contains(el.shadowRoot.activeElement)) el.focus({preventScroll: true})
}
function ask(late) {
  const kept = late && !el.dataset.revealed
  if (kept) release()
  part.answers.style.visibility = kept ? "hidden" : ""
  if (!el.dataset.revealed) write(asked, kept ? unguessed : question)
}
offer(part.answers, (n) => {
  if (guessed !== null) return  // a guess is a guess
  guessed = choices[n]
  press(part.answers, n)
  show(first, true)
  if (!still.matches) toggle()
})
function reveal() {
  if (!truth) return
  const bar = asked.parentElement
  bar.style.minHeight = `${bar.offsetHeight}px`  // the truth gets the room that question and answers had: nothing moves
  const but = guessed === right ? "and that is right" : `but it is <b>${right}</b>`
  const verdict = guessed === null ? `It is <b>${right}</b>: ` : `You said <b>${guessed}</b>, ${but}: `
  write(asked, verdict + truth)
  part.live.textContent = `${words()} ${plain(verdict + truth)}`
  release()
  part.answers.hidden = true
  el.dataset.revealed = "yes"
  ask(false)
}

// Clicks: in a figure on what can be chosen, in a listing on a line.
for (const figure of new Set(picks.map((p) => p.figure).filter((f) => f))) {
  figure.on_event("tap", ({x, y}) => {
    for (const {source, w, h} of picks.filter((p) => p.figure === figure).reverse()) {  // the topmost first
      const data = source.data, wide = (i) => data[w]?.[i] ?? w, high = (i) => data[h]?.[i] ?? h
      const at = Array.from(data.key).findLastIndex((key, i) =>
        said.has(key) && Math.abs(x - data.x[i]) <= wide(i) / 2 && Math.abs(y - data.y[i]) <= high(i) / 2)
      if (at >= 0) {
        const again = data.key[at] === pick
        choose(data.key[at])
        if (!enter() && again) choose(null)
        return
      }
    }
    choose(null)
  })
}
// A play head follows the pointer that drags, and a click in a figure without anything to choose.
for (const {figure, source} of heads) {
  const track = tracks.find((one) => one.source === source && one.column === "x")
  const drag = ({x}) => {
    const away = (k) => Math.min(...Array.from(track.all.subarray(k * track.size, (k + 1) * track.size), (at) => Math.abs(at - x)))
    let near = first
    for (let k = first; k < first + frames; k++) if (away(k) < away(near)) near = k
    if (near === frame) return
    stop()
    show(near, true)
    if (over()) reveal()
  }
  figure.on_event("pan", drag)
  if (!picks.some((pick) => pick.figure === figure)) figure.on_event("tap", drag)
}
// A strip of time zooms by the wheel, too, once its player has the focus.
if (step === "Zoom") el.addEventListener("wheel", (event) => {
  if (!el.matches(":focus-within")) return
  event.preventDefault()
  go(frame + (event.deltaY < 0 ? 1 : -1))
}, {passive: false})
// On the site lessons are pages, in a folder beside that of the pictures.
el.addEventListener("click", (event) => {
  const link = event.composedPath().find((one) => one.localName === "a")
  if (link && /\/(notebooks|pictures)\/\w+\.html$/.test(location.pathname))
    link.href = link.href.replace(/(notebooks|pictures)\/(\w+)\.ipynb$/, "notebooks/$2.html")
}, true)
part.listing?.addEventListener("click", (event) => {
  const line = Number(event.composedPath().find((e) => e.dataset?.line)?.dataset.line)
  const runs = listing.current.flatMap((now, k) => now === line && k >= first && k < first + frames ? [k] : [])
  if (runs.length) go(runs.find((k) => k > frame) ?? runs[0])
})
const neighbour = (way) => {
  const keys = [...said.keys()], at = keys.indexOf(pick)
  choose(keys[at < 0 ? (way > 0 ? 0 : keys.length - 1) : (at + way + keys.length) % keys.length])
}

// In a notebook or a lesson keys count only while the focus is in the player; a saved page has nothing else to use them.
// A control keeps the keys that it uses itself. JupyterLab looks for its shortcuts before the page's elements see a key;
// the attribute tells it to leave this element's keys alone.
const keys = dials.length ? {} : {
  Enter: enter, " ": toggle, ArrowRight: () => go(frame + 1), ArrowLeft: () => go(frame - 1), Home: () => go(first),
  End: () => go(first + frames - 1), PageDown: () => go(mark(1)), PageUp: () => go(mark(-1)),
}
if (said.size) Object.assign(keys, {ArrowDown: () => neighbour(1), ArrowUp: () => neighbour(-1), Escape: () => choose(null)})
el.setAttribute("data-lm-suppress-shortcuts", "true")
function hear(event) {
  if (!el.getClientRects().length || event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return
  const target = event.composedPath()[0]
  if (target.matches("select, textarea") || (target.matches("button, a") && [" ", "Enter"].includes(event.key))) return
  if (target.matches("input") && event.key !== " ") return
  event.preventDefault()
  event.stopPropagation()
  keys[event.key]()
}
for (const one of [el, ...(place.closest(".cypresskit-page") ? [document.body] : [])]) one.addEventListener("keydown", hear)
el.addEventListener("pointerdown", (event) => {
  if (!event.composedPath()[0].matches("button, select, input")) setTimeout(() => el.focus({preventScroll: true}))
})

// Light or dark: JupyterLab, VS Code and the site say so on <body>, Colab on <html>; a plain page follows the reader's
// setting. Colours on a canvas can't be CSS variables, so each ink is looked up and handed to its glyph.
const wish = window.matchMedia("(prefers-color-scheme: dark)")
let watch = null
function forget() {
  wish.removeEventListener("change", colour)
  still.removeEventListener("change", stop)
  watch.disconnect()
}
function colour() {
  if (watch && !el.isConnected) return forget() // its cell has run again
  const {jpThemeLight, vscodeThemeKind, theme} = document.body.dataset
  const page = jpThemeLight ?? vscodeThemeKind ?? theme ?? document.documentElement.getAttribute("theme") ?? "auto"
  el.toggleAttribute("data-dark", page === "auto" ? wish.matches : /false|dark|contrast$/.test(page))
  const style = getComputedStyle(el)
  for (const [model, property, token] of inks) {
    const value = style.getPropertyValue(`--ck-${token}`).trim()
    model[property] = typeof model[property] === "string" ? value : {value}
  }
}
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
for (const [figure, glyph, part, most] of fitted) {
  const fit = () => {
    const cell = figure.inner_width / Math.abs(figure.x_range.end - figure.x_range.start)
    const size = Math.min(most, part * cell)
    if (cell > 0) glyph.text_font_size = {value: `${Math.max(size > 8.4 ? 11 : 8, size).toFixed(1)}px`}
  }
  figure.properties.inner_width.change.connect(fit)
  fit()
}
wish.addEventListener("change", colour)
still.addEventListener("change", stop)
watch = new MutationObserver(colour)
watch.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind", "data-theme"]})

// The tallest caption has room, so that the picture below it keeps its place.
const size = (text) => text.replace(/<[^>]*>/g, "").length + 100 * text.split("<br>").length
const longest = captions.reduce((a, b) => (size(b) > size(a) ? b : a))
new ResizeObserver(() => {
  const probe = Object.assign(part.caption.cloneNode(), {innerHTML: longest})
  Object.assign(probe.style, {position: "absolute", visibility: "hidden", minHeight: "", width: `${part.caption.offsetWidth}px`})
  part.caption.after(probe)
  part.caption.style.minHeight = `${probe.offsetHeight}px`
  probe.remove()
}).observe(part.caption)

for (const [name, value] of [["role", "group"], ["tabindex", 0], ["aria-label", label]]) el.setAttribute(name, value)
if (truth) el.style.setProperty("--ck-room", "34px")
slider.max = Math.max(frames - 1, 1)
press(part.scene, 0)
colour()
stop()
show(dials.length ? tells : begins, true)
choose(null)
// A journey or a page around this picture can set its frame and selection, and whether keys are meant for it.
function visit() {
  const {frame: asked, key, focus} = JSON.parse(place.dataset.go ?? "{}"), at = Math.min(asked, count - 1)
  if (!(at in captions)) return
  change(scenes.findLastIndex(([from]) => from <= at))
  go(at)
  choose(key)
  if (focus) el.focus({preventScroll: true})
}
if (Number(around?.dataset.scene ?? -1) in scenes) change(Number(around.dataset.scene))
place.addEventListener("cypresskit-go", visit)
place.addEventListener("cypresskit-play", () => { if (timer === null && !over() && !dials.length && !still.matches) start() })
visit()
el.dataset.ready = "yes"
