// A picture over many frames that plays in the browser, without Python. Its data, `spec`, comes from
// Player and Sheet in Python.
import {leave, listenKeys, plain, press, takeFocus, write} from "./shell.js"
import {dataAt, moveBetween, spread} from "./tracks.js"

export const CALM = window.matchMedia("(prefers-reduced-motion: reduce)")
const PHONE = window.matchMedia("(max-width: 640px)")
// Sizes of text in pixels: those of look.css, and the least.
const SIZES = [24, 18, 14, 12]
const READABLE_TEXT = 11
const HIDDEN_TEXT = 6 // below this size a label would only cover others
const LISTED_LINES = 13 // visible lines of a listing
const STEP_MS = 220 // duration of a single step's animation
const MIN_INTERVAL_MS = 28 // between two drawings of an animation
const DRAWING_SHARE = 5 // at most one fifth of the time is spent on drawing animations

/** @returns {HTMLElement[]} */
const elements = (root, selector) => [...root.querySelectorAll(selector)]

/** The sliders around a picture (interactive.py), if there are some.
 * @returns {HTMLElement | null} */
const aroundOf = (place) => place.closest(".cypresskit-controls")

/** The lines of a listing around the current ones, as HTML. */
function listed({lines, colors}, current) {
  const colorOf = new Map(colors)
  const first = current[0] - 1 - Math.floor(LISTED_LINES / 3)
  const from = Math.max(0, Math.min(first, lines.length - LISTED_LINES))
  return lines
    .slice(from, from + LISTED_LINES)
    .map((text, n) => {
      const line = from + n + 1
      const [kind, mark] = current.includes(line) ? ["now", "&#9654;"] : ["row", ""]
      const color = colorOf.has(line) ? `style="border-color:${colorOf.get(line)}"` : ""
      const number = `<span class="n">${mark} ${line}</span>`
      return `<div data-line="${line}" class="${kind}" ${color}>${number}${text}</div>`
    })
    .join("")
}

class Player {
  /** @param {HTMLElement} el the element with the player's parts in its shadow root
   * @param {HTMLElement} place the picture that it is in */
  constructor(el, spec, place) {
    this.el = el
    this.place = place
    this.spec = spec
    /** @type {Record<string, any>} */
    this.part = {}
    for (const part of elements(el.shadowRoot, "[data-part]")) this.part[part.dataset.part] = part
    this.count = spec.captions.length
    this.tracks = spec.tracks.map((track) => spread(track, this.count))
    this.first = spec.scenes[0][0] // first frame of the current scene
    this.frames = spec.scenes[0][1]
    this.frame = -1
    this.pick = null // the selected key
    this.motion = 0 // number of animations started: only the latest one continues
    this.painting = 0 // milliseconds that drawing a frame takes
    this.timer = null
    this.about = new Map(spec.about)
    this.sceneOf = new Map(spec.sceneOfKey)
    this.labels = [...el.shadowRoot.querySelectorAll(".figure")]
    this.ends = []
  }

  /** The frame at which a scene opens. */
  get opening() {
    return this.first + Math.min(this.spec.opens, this.frames - 1)
  }

  get last() {
    return this.first + this.frames - 1
  }

  get over() {
    return this.frame >= this.last
  }

  get words() {
    return plain(this.spec.captions[this.frame])
  }

  begin() {
    const {el, part, spec} = this
    el.setAttribute("role", "group")
    el.setAttribute("aria-label", spec.label)
    el.tabIndex = 0
    this.addControls()
    this.addClicks()
    this.addKeys()
    this.addSqueezes()
    this.addFits()
    this.addStops()
    this.keepRoomForCaptions()
    part.slider.max = Math.max(this.frames - 1, 1)
    press(part.scene.children, 0)
    this.recolor()
    this.stop()
    this.show(this.opening, {quiet: true})
    this.choose(null)
    this.visit()
  }

  end() {
    this.stop()
    this.motion++
    for (const end of this.ends) end()
    // If the picture comes back to the page, it continues here.
    this.place.dataset.go = JSON.stringify({frame: this.frame, key: this.pick})
  }

  listen(target, event, act, options) {
    target.addEventListener(event, act, options)
    this.ends.push(() => target.removeEventListener(event, act, options))
  }

  // -- frames

  /** Show a frame. What moves takes `time` milliseconds. With `quiet`, a screen reader doesn't read
   * the caption: while playing, that would be noise. */
  show(frame, {quiet = false, time = 0} = {}) {
    const {part, spec} = this
    const to = Math.max(this.first, Math.min(this.last, frame))
    if (to === this.frame) return
    const from = this.frame
    this.frame = to
    this.motion++
    const travels = time > 0 && from >= this.first && from <= this.last && !CALM.matches
    const changed = dataAt(this.tracks, to)
    if (travels) moveBetween(this.tracks, from, to, 0, changed)
    this.paint(changed)
    if (travels) this.travel(from, to, time)
    if (this.pick !== null) {
      this.light()
      this.say()
    }
    const step = to - this.first
    part.slider.value = step
    const words = `${spec.step.toLowerCase()} ${step + 1} of ${this.frames}`
    part.slider.setAttribute("aria-valuetext", `${words}: ${this.words}`)
    write(part.caption, spec.captions[to])
    if (part.listing) write(part.listing, listed(spec.listing, spec.listing.current[to]))
    this.labels.forEach((figure, n) => {
      figure.setAttribute("aria-label", `${spec.labels[n]}. ${this.words}`)
    })
    if (!quiet) part.live.textContent = this.words
    this.el.dataset.frame = String(to)
  }

  /** Update the figures' data, and measure how long that and the next drawing take. */
  paint(changed) {
    if (!changed.size) return
    const began = performance.now()
    for (const [source, data] of changed) source.data = data
    const handing = performance.now() - began
    requestAnimationFrame(() => {
      const drawing = performance.now()
      setTimeout(() => {
        this.painting = handing + performance.now() - drawing
      })
    })
  }

  travel(from, to, time) {
    const mine = this.motion
    const began = performance.now()
    let last = began
    const move = () => {
      if (mine !== this.motion || !this.el.isConnected) return
      const now = performance.now()
      const part = Math.min(1, (now - began) / time)
      if (now - last > Math.max(MIN_INTERVAL_MS, DRAWING_SHARE * this.painting) || part === 1) {
        last = now
        const eased = time < 180 ? part : part * part * (3 - 2 * part)
        this.paint(moveBetween(this.tracks, from, to, eased, new Map()))
      }
      if (part < 1) requestAnimationFrame(move)
    }
    requestAnimationFrame(move)
  }

  // -- playing

  get playing() {
    return this.timer !== null
  }

  get period() {
    return 1000 / Number(this.part.speed.value)
  }

  stop() {
    if (this.playing) clearTimeout(this.timer)
    this.timer = null
    this.part.play.textContent = CALM.matches ? "Step" : "Play"
    this.el.dataset.playing = ""
  }

  /** Play. Frames are due at fixed times: a late one doesn't delay the others, and none is skipped. */
  start() {
    this.part.play.textContent = "Pause"
    this.el.dataset.playing = "yes"
    this.due = performance.now() + this.period
    this.timer = setTimeout(() => this.tick(), this.period)
  }

  tick() {
    if (!this.el.isConnected || this.over) {
      this.stop()
      this.part.live.textContent = this.words
      return
    }
    this.show(this.frame + 1, {quiet: true, time: this.period})
    this.due = Math.max(this.due + this.period, performance.now() - 200)
    this.timer = setTimeout(() => this.tick(), Math.max(0, this.due - performance.now()))
  }

  toggle() {
    takeFocus(this.el)
    if (this.playing) {
      this.stop()
      this.part.live.textContent = this.words
    } else if (CALM.matches) {
      this.show(this.frame + 1)
    } else {
      if (this.over) this.show(this.first, {quiet: true})
      this.start()
    }
  }

  go(frame) {
    this.stop()
    this.show(frame, {time: Math.abs(frame - this.frame) === 1 ? STEP_MS : 0})
  }

  /** Show another scene, at the same step. */
  change(scene) {
    const {part, spec} = this
    const around = aroundOf(this.place)
    if (around) around.dataset.scene = scene // the next recomputed picture starts with it
    const step = this.frame - this.first
    this.stop()
    this.first = spec.scenes[scene][0]
    this.frames = spec.scenes[scene][1]
    part.slider.max = this.frames - 1
    press(part.scene.children, scene)
    this.show(this.first + Math.min(step, this.frames - 1))
    if (!this.shown.has(this.pick)) this.choose(null)
  }

  // -- controls

  addControls() {
    const {part, el} = this
    this.listen(CALM, "change", () => this.stop())
    part.play.addEventListener("click", () => this.toggle())
    part.back.addEventListener("click", () => this.go(this.frame - 1))
    part.forward.addEventListener("click", () => this.go(this.frame + 1))
    part.slider.addEventListener("input", () => {
      this.stop()
      this.show(part.slider.valueAsNumber + this.first)
    })
    ;[...part.scene.children].forEach((button, n) => {
      button.addEventListener("click", ({detail}) => {
        this.change(n)
        if (detail) takeFocus(el)
      })
    })
  }

  // -- selecting

  /** Highlight all cells of the selected key. They may change with the frame. */
  light() {
    for (const {source, on, marks} of this.spec.picks) {
      const {key, lit} = source.data
      const now = Array.from(key, (k) => (k === this.pick ? on : 0))
      if (now.some((value, n) => value !== lit[n])) source.data = {...source.data, lit: now}
      const seen = now.some((value) => value > 0)
      for (const mark of marks) if (mark.visible !== seen) mark.visible = seen
    }
  }

  say() {
    const words = this.about.get(this.pick)
    const now = Array.isArray(words) ? words.findLast(([from]) => from <= this.frame)?.[1] : words
    const invite = `<span class="soft">Click a part of the picture to highlight it and read about it.</span>`
    write(this.part.chosen, now ?? invite)
  }

  choose(key) {
    this.pick = this.about.has(key) ? key : null
    this.light()
    this.say()
    this.el.dataset.pick = this.pick ?? ""
    if (this.pick !== null) this.part.live.textContent = this.part.chosen.textContent
  }

  /** The keys that cells have now. */
  get shown() {
    return new Set(this.spec.picks.flatMap(({source}) => Array.from(source.data.key)))
  }

  chooseNext(direction) {
    const {shown} = this
    const keys = [...this.about.keys()].filter((key) => shown.has(key))
    const at = keys.indexOf(this.pick)
    const start = direction > 0 ? 0 : keys.length - 1
    this.choose(keys[at < 0 ? start : (at + direction + keys.length) % keys.length])
  }

  /** Enter the selected part: it may have its own scene, or lead to another level of a journey.
   * Returns whether a journey took it. */
  enter() {
    if (this.sceneOf.has(this.pick)) this.change(this.sceneOf.get(this.pick))
    const detail = {key: this.pick, frame: this.frame}
    const options = {bubbles: true, cancelable: true, detail}
    return !this.place.dispatchEvent(new CustomEvent("cypresskit-enter", options))
  }

  /** The topmost key at a point of a figure, or undefined. */
  keyAt(figure, x, y) {
    for (const {source, w, h} of this.spec.picks.filter((p) => p.figure === figure).reverse()) {
      const {data} = source
      const sizeOf = (size, n) => data[size]?.[n] ?? size
      const n = Array.from(data.key).findLastIndex(
        (key, i) =>
          this.about.has(key) &&
          Math.abs(x - data.x[i]) <= sizeOf(w, i) / 2 &&
          Math.abs(y - data.y[i]) <= sizeOf(h, i) / 2,
      )
      if (n >= 0) return data.key[n]
    }
    return undefined
  }

  tap(figure, x, y) {
    const key = this.keyAt(figure, x, y)
    const again = key === this.pick
    this.choose(key ?? null)
    if (key === undefined) return
    if (!this.enter() && again) this.choose(null)
  }

  addClicks() {
    const {el, part, spec} = this
    const clicked = new Set(spec.picks.map(({figure}) => figure))
    for (const figure of clicked) figure.on_event("tap", ({x, y}) => this.tap(figure, x, y))
    part.listing?.addEventListener("click", (event) => {
      const row = event.composedPath().find((node) => node.dataset?.line)
      const line = Number(row?.dataset.line)
      const runs = []
      for (let k = this.first; k <= this.last; k++)
        if (spec.listing.current[k].includes(line)) runs.push(k)
      if (runs.length) this.go(runs.find((k) => k > this.frame) ?? runs[0])
    })
    // A documentation site has lessons as pages, not as notebooks: links lead there.
    const follow = (event) => {
      const link = event.composedPath().find((node) => node.localName === "a")
      if (link && /\/(notebooks|pictures)\/\w+\.html$/.test(location.pathname))
        link.href = link.href.replace(/(notebooks|pictures)\/(\w+)\.ipynb$/, "notebooks/$2.html")
    }
    el.addEventListener("click", follow, true)
    el.addEventListener("pointerdown", (event) => {
      const target = /** @type {Element} */ (event.composedPath()[0])
      if (target.matches("button, select, input")) return
      setTimeout(() => takeFocus(el))
    })
  }

  addKeys() {
    const {el} = this
    const keys = {
      Escape: () => (this.pick === null ? leave(el) : this.choose(null)),
      Enter: () => this.enter(),
      " ": () => this.toggle(),
      ArrowRight: () => this.go(this.frame + 1),
      ArrowLeft: () => this.go(this.frame - 1),
      Home: () => this.go(this.first),
      End: () => this.go(this.last),
    }
    if (this.about.size)
      Object.assign(keys, {
        ArrowDown: () => this.chooseNext(1),
        ArrowUp: () => this.chooseNext(-1),
      })
    this.ends.push(listenKeys(el, keys))
  }

  // -- looks

  /** Look up the theme's colors and set them on glyphs: a canvas can't use CSS variables. */
  recolor() {
    const probe = this.part.live.appendChild(document.createElement("span"))
    const colors = new Map()
    const colorOf = (token) => {
      if (!colors.has(token)) {
        const [name, alpha = "1"] = token.split(" ")
        probe.style.color = `var(--ck-${name})`
        const {color} = getComputedStyle(probe)
        // A tint's alpha takes the place of the theme's.
        const tint = (all, rgb) => (alpha === "1" ? all : `rgba(${rgb}, ${alpha})`)
        colors.set(token, color.replace(/^rgba?\(((?:[^,]+,){2}[^,)]+).*/, tint))
      }
      return colors.get(token)
    }
    for (const [model, property, token] of this.spec.colors) {
      const color = Array.isArray(token) ? token.map(colorOf) : colorOf(token)
      const isPlain = typeof model[property] === "string" || Array.isArray(token)
      model[property] = isPlain ? color : {value: color}
    }
    probe.remove()
  }

  /** Let texts have the page's typeface, and scale with their figures, in steps. */
  addFits() {
    const family = getComputedStyle(this.el).fontFamily
    for (const [, {glyph}] of this.spec.fitted)
      if (glyph.text_font?.value !== "monospace") glyph.text_font = {value: family}
    const sizeOf = (part, pixels, {start, end}) =>
      part ? (part * pixels) / Math.abs(end - start) : Infinity
    for (const [figure, text, across, down, most] of this.spec.fitted) {
      const fit = () => {
        const size = Math.min(
          most,
          sizeOf(across, figure.inner_width, figure.x_range),
          sizeOf(down, figure.inner_height, figure.y_range),
        )
        const step = SIZES.find((each) => each <= size) ?? READABLE_TEXT
        if (!figure.inner_width) return
        text.glyph.text_font_size = {value: `${step}px`}
        text.visible = size >= HIDDEN_TEXT
      }
      figure.properties.inner_width.change.connect(fit)
      figure.properties.inner_height.change.connect(fit)
      figure.x_range.change.connect(fit)
      fit()
    }
  }

  /** On a phone, let rows be as wide as the screen, beside their names. */
  addSqueezes() {
    for (const [figure, from, to, left, right, high] of this.spec.squeezed) {
      const {aspect_ratio} = figure
      const {start, end} = figure.x_range
      const place = this.el.shadowRoot.getElementById(figure.id)
      const squeeze = () => {
        const width = place.clientWidth
        const unit = (width - left - right) / (to - from)
        const narrow = {start: from - left / unit, end: to + right / unit}
        figure.x_range.setv(PHONE.matches ? narrow : {start, end})
        figure.aspect_ratio = PHONE.matches ? width / high : aspect_ratio
      }
      const observer = new ResizeObserver(squeeze)
      observer.observe(place)
      this.ends.push(() => observer.disconnect())
    }
  }

  /** Let Tab stop at no canvas: the player has their keys. */
  addStops() {
    for (const figure of this.spec.figures)
      Bokeh.index.get_one(figure).canvas.events_el.removeAttribute("tabindex")
  }

  /** Reserve space for the tallest caption, so that the picture below it doesn't move. */
  keepRoomForCaptions() {
    const {caption} = this.part
    const size = (html) => html.replace(/<[^>]*>/g, "").length + 100 * html.split("<br>").length
    const {captions} = this.spec
    const longest = captions.reduce((a, b) => (size(b) > size(a) ? b : a))
    const observer = new ResizeObserver(() => {
      const probe = Object.assign(caption.cloneNode(), {innerHTML: longest})
      Object.assign(probe.style, {
        position: "absolute",
        visibility: "hidden",
        minHeight: "",
        width: `${caption.offsetWidth}px`,
      })
      caption.after(probe)
      caption.style.minHeight = `${probe.offsetHeight}px`
      probe.remove()
    })
    observer.observe(caption)
    this.ends.push(() => observer.disconnect())
  }

  // -- surroundings

  /** Let a journey or a page around this picture set its frame, selection and focus. */
  visit() {
    const {place, spec} = this
    const scene = Number(aroundOf(place)?.dataset.scene ?? -1)
    if (scene in spec.scenes) this.change(scene)
    this.goToRequested()
    this.listen(place, "cypresskit-go", () => this.goToRequested())
    this.listen(place, "cypresskit-play", () => {
      if (!this.playing && !this.over && !CALM.matches) this.start()
    })
  }

  goToRequested() {
    const {frame: requested, key, focus} = JSON.parse(this.place.dataset.go ?? "{}")
    const frame = Math.min(requested, this.count - 1)
    if (!(frame in this.spec.captions)) return
    this.change(this.spec.scenes.findLastIndex(([first]) => first <= frame))
    this.go(frame)
    this.choose(key)
    if (focus) takeFocus(this.el)
  }
}

/** Wait until all figures of a document are drawn. */
const drawn = (made) =>
  new Promise((resolve) => {
    if (made.is_idle) resolve()
    else made.idle.connect(resolve)
  })

// Bokeh doesn't return the document that it makes, so they are made one after another.
let previous = Promise.resolve()

/** Put the figures of a saved document into their places. Returns the document. */
async function embed(saved, inside, ends) {
  const root_ids = saved.roots.map(({id}) => id)
  const roots = Object.fromEntries(root_ids.map((id) => [id, inside.getElementById(id)]))
  const before = new Set(Bokeh.documents)
  let made = null
  let managers = []
  ends.push(() => {
    made?.clear()
    for (const manager of managers) for (const view of [...manager]) manager.remove(view)
    if (made) Bokeh.documents.splice(Bokeh.documents.indexOf(made), 1)
  })
  try {
    managers = await Bokeh.embed.embed_items({made: saved}, [{docid: "made", roots, root_ids}])
  } finally {
    made = Bokeh.documents.find((document) => !before.has(document))
  }
  return made
}

/** Start a player. Functions that release its resources are added to `ends`. */
export async function beginPlayer(box, {html, document: saved}, place, ends) {
  const inside = box.attachShadow({mode: "open"})
  inside.innerHTML = html
  const embedding = previous.then(() => embed(saved, inside, ends))
  previous = embedding.catch(() => {})
  const made = await embedding
  const player = new Player(box, made.roots()[0].tags[0], place)
  ends.push(() => player.end())
  await drawn(made)
  player.begin()
  return () => player.recolor()
}
