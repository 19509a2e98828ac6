// What the tests do and read in a page: functions for `page.evaluate`, which Python has as
// `JS.name`.

// Puts the last player that has the source (any, for "") to a frame, as a reader moves its
// slider (null: leaves it), and says what it shows then.
const at = async ([k, name]) => {
  const doc = Bokeh.documents.findLast((d) => !name || d.get_model_by_name(name)),
    models = [...doc.all_models]
  const figure = models.find((m) => m.tags?.[0]?.scenes),
    {scenes} = figure.tags[0],
    data = {}
  const player = Bokeh.index.get_one(figure).el.getRootNode(),
    slider = player.querySelector("[data-part=slider]")
  if (k !== null) {
    const scene = scenes.findLastIndex(([first]) => first <= k)
    player.querySelectorAll("[data-part=scene] button")[scene].click()
    slider.value = k - scenes[scene][0]
    slider.dispatchEvent(new Event("input"))
  }
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
  for (const m of models)
    if (m.type === "ColumnDataSource" && m.name)
      data[m.name] = Object.fromEntries(
        Object.entries(m.data).map(([n, v]) => [n, Array.from(v, String)]),
      )
  return {
    step: slider.valueAsNumber,
    frame: +player.host.dataset.frame,
    data,
    words: [...player.children]
      .slice(1)
      .map((part) => part.innerHTML)
      .join(" "),
    labels: [...player.querySelectorAll(".figure")].map((figure) => figure.ariaLabel).join(" "),
  }
}

// Where on the page the cell of a picture's source is, in pixels, by the source's name, the
// cell's number, and how far from its center.
const place = ([name, cell, right = 0, down = 0]) => {
  const doc = Bokeh.documents.findLast((d) => d.get_model_by_name(name)),
    {data} = doc.get_model_by_name(name)
  const drawn = (m) => m.type === "Plot" && m.renderers.some((r) => r.data_source?.name === name)
  const view = Bokeh.index.get_one([...doc.all_models].find(drawn))
  const box = view.el.getBoundingClientRect(),
    {x_scale, y_scale} = view.frame
  return [
    box.x + x_scale.compute(data.x[cell] + right),
    box.y + y_scale.compute(data.y[cell] + down),
  ]
}

// When nothing has moved for three frames of the screen.
const settled = async () => {
  const figures = Bokeh.documents.flatMap((doc) =>
    [...doc.all_models].filter((m) => m.type === "Plot"),
  )
  const boxes = () =>
    JSON.stringify(figures.map((m) => Bokeh.index.get_one(m)?.el.getBoundingClientRect()))
  for (let same = 0, last = ""; same < 3; ) {
    await new Promise((done) => requestAnimationFrame(done))
    const now = boxes()
    same = now === last ? same + 1 : 0
    last = now
  }
}

// What a player's parts say, and the lines of its listing: number, code, and whether it is a
// current one.
const said = () => {
  const {dataset, shadowRoot} = document.querySelector("[data-ready]")
  const part = (name) => shadowRoot.querySelector(`[data-part=${name}]`),
    slider = part("slider")
  const words = (name) => part(name).innerText.split(/\s+/).filter(Boolean).join(" ")
  const lines = [...shadowRoot.querySelectorAll(".code > div")].map(
    ({className, childNodes: [number, code]}) => [
      Number(number.textContent.match(/\d+/)),
      code?.data ?? "",
      className === "now",
    ],
  )
  return {
    pick: dataset.pick,
    caption: words("caption"),
    chosen: words("chosen"),
    lines,
    value: slider.ariaValueText,
    most: +slider.max,
    scene: shadowRoot.querySelector("[data-part=scene] [aria-pressed=true]").textContent,
  }
}

// Begins to play from the frame shown, so many frames a second.
const begin = (speed) => {
  const player = document.querySelector("[data-ready]")
  player.shadowRoot.querySelector("select").append(new Option(speed, speed, true, true))
  player.dispatchEvent(new KeyboardEvent("keydown", {key: " "}))
}

// Which level of a journey is shown, what is chosen in it, its frame, and where it ends on the
// page.
const level = () => {
  const level = [...document.querySelectorAll(".cypresskit-journey section")].findIndex(
    (one) => !one.hidden,
  )
  const player = document
    .querySelectorAll(".cypresskit-journey section")
    [level].querySelector("[data-ready]")
  return (
    player && [
      level,
      player.dataset.pick,
      +player.dataset.frame,
      player.getBoundingClientRect().bottom,
    ]
  )
}

// What is wrong in the pictures: a text that is cut off, too small, or over another, and a mark
// outside of its figure.
const faults = () => {
  const pen = document.createElement("canvas").getContext("2d"),
    boxes = [],
    faults = [],
    lost = new Map()
  const seen = (m) => m.type === "Plot" && Bokeh.index.get_one(m)?.el.getClientRects().length
  for (const figure of Bokeh.documents.flatMap((doc) => [...doc.all_models].filter(seen))) {
    const view = Bokeh.index.get_one(figure),
      {x_scale, y_scale, bbox} = view.frame
    for (const renderer of figure.renderers) {
      const {
        glyph,
        visible,
        data_source: {data},
      } = renderer
      const column = (p) => (p?.field ? data[p.field] : undefined)
      if (!visible) continue // too small to be shown
      if (glyph.type !== "Text") {
        const value = (p, i) => column(p)?.[i] ?? p?.value ?? 0,
          count = Math.max(...Object.values(data).map((c) => c.length))
        const ends = (i) =>
          [-0.5, 0.5].map((half) =>
            glyph.type === "Segment"
              ? half < 0
                ? [value(glyph.x0, i), value(glyph.y0, i)]
                : [value(glyph.x1, i), value(glyph.y1, i)]
              : [
                  value(glyph.x, i) + half * value(glyph.width, i),
                  value(glyph.y, i) + half * value(glyph.height, i),
                ],
          )
        const here = Array.from({length: count}, (_, i) => ends(i))
          .flat()
          .map(([x, y]) => {
            const [across, down] = [x_scale.compute(x), y_scale.compute(y)]
            return (
              across < bbox.left - 3 ||
              across > bbox.right + 3 ||
              down < bbox.top - 3 ||
              down > bbox.bottom + 3
            )
          })
        // what goes from figure to figure is in one of them
        const others = lost.get(renderer) ?? here
        lost.set(
          renderer,
          here.map((out, n) => out && others[n]),
        )
        continue
      }
      const texts = column(glyph.text) ?? [glyph.text.value],
        size = parseFloat(glyph.text_font_size.value)
      pen.font = `${glyph.text_font_style?.value ?? "normal"} ${size}px ${glyph.text_font.value}`
      Array.from(texts).forEach((text, i) => {
        const place = (p, s) => s.compute(column(p)?.[i] ?? p.value)
        const x = place(glyph.x, x_scale) + (glyph.x_offset?.value ?? 0)
        const y = place(glyph.y, y_scale) + (glyph.y_offset?.value ?? 0),
          wide = pen.measureText(text).width
        if (!text.trim() || !Number.isFinite(x + y)) return
        const align = column(glyph.text_align)?.[i] ?? glyph.text_align.value
        const left = x - wide * {left: 0, center: 0.5, right: 1}[align]
        if (left < bbox.left - 3 || left + wide > bbox.right + 3) faults.push(`cut off: ${text}`)
        if (size < 10.9) faults.push(`${size} px: ${text}`)
        boxes.push([left, left + wide, y - size / 2.6, y + size / 2.6, text, figure.id])
      })
    }
  }
  boxes.forEach((a, i) =>
    boxes.slice(i + 1).forEach((b) => {
      const across = a[0] < b[1] - 1 && b[0] < a[1] - 1,
        down = a[2] < b[3] && b[2] < a[3]
      if (a[5] === b[5] && across && down) faults.push(`${a[4]} over ${b[4]}`)
    }),
  )
  for (const [{glyph, data_source}, ends] of lost)
    if (ends.includes(true)) faults.push(`outside: ends of ${glyph.type} ${data_source.name}`)
  return faults
}

// What is written on the page too small to be read, and how high its letters are.
const small = () =>
  [...document.querySelectorAll("body *")]
    .filter((one) => one.checkVisibility())
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((one) => {
      const {a, b} = one.getScreenCTM?.() ?? {a: 1, b: 0} // b: of a turned text
      return [parseFloat(getComputedStyle(one).fontSize) * Math.hypot(a, b), one.textContent]
    })
    .filter(([size]) => size > 0 && size < 10.9) // 0: in a chart's other width, which isn't shown

// The stops of Tab without a name, and the boxes that scroll and are none.
const strangeStops = () => {
  const below = (root) =>
    [...root.querySelectorAll("*")].flatMap((one) => [
      one,
      ...(one.shadowRoot ? below(one.shadowRoot) : []),
    ])
  const seen = below(document.body).filter((one) => one.checkVisibility())
  const isNamed = (one) =>
    one.ariaLabel || one.title || one.textContent.trim() || one.labels?.length
  const scrolls = (one) =>
    /auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth
  return seen
    .filter((one) => (one.tabIndex < 0 ? scrolls(one) : !isNamed(one)))
    .map((one) => one.outerHTML.slice(0, 80))
}

// What has a color in the cell that begins with `own`, by kind, and the numbers beside its lines.
const colored = () => {
  const editor = [...document.querySelectorAll(".jp-CodeCell .cm-editor")].find((one) =>
    one.textContent.includes("own = "),
  )
  const told = (kind) =>
    [...(CSS.highlights.get(`il-${kind}`) ?? [])]
      .filter((range) => editor.contains(range.startContainer))
      .map((range) => range.startContainer.data.slice(range.startOffset, range.endOffset).trim())
  const line = [...editor.querySelectorAll(".cm-line")].find((one) =>
    one.textContent.includes("mda"),
  )
  const top = line?.getBoundingClientRect().top
  const numbers = [...editor.querySelectorAll(".cm-lineNumbers .cm-gutterElement")]
  return {
    keyword: told("keyword"),
    def: told("def"),
    number: told("number"),
    comment: told("comment"),
    wrong: numbers.find((one) => Math.abs(one.getBoundingClientRect().top - top) < 3)?.textContent,
  }
}

// Where the controls end.
const bottoms = () => {
  const player = document.querySelector("[data-ready]").shadowRoot
  return [...player.querySelectorAll("[data-part]:is(button, select, input)")].map(
    (m) => m.getBoundingClientRect().bottom,
  )
}

// Takes a step; from then on `drawn()` tells each column that travels, as `[source, column,
// values at each drawing]`.
const travel = () => {
  const tag = [...Bokeh.documents.at(-1).all_models].find((m) => m.tags?.[0]?.scenes).tags[0]
  const paths = tag.tracks.filter((t) => t.moves).map(({source, column}) => [source, column, []])
  for (const [source, column, path] of paths)
    source.properties.data.change.connect(() => path.push(Array.from(source.data[column])))
  document
    .querySelector("[data-ready]")
    .dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}))
  window.drawn = () =>
    paths.map(([{name}, ...rest]) => [name, ...rest]).filter(([, , path]) => path.length)
}

// By how much of 255 the figures differ from what they were when this was last asked. Then all
// of them is painted anew.
const painted = () => {
  let most = 0
  for (const view of Bokeh.documents
    .at(-1)
    .all_models.values()
    .filter((m) => m.type === "Plot")
    .map((m) => Bokeh.index.get_one(m))) {
    const {canvas, ctx} = view.canvas_view.primary,
      {data} = ctx.getImageData(0, 0, canvas.width, canvas.height)
    const now = data.map((v, i) => (i % 4 < 3 ? (v * data[i | 3]) / 255 : v))
    view.before?.forEach((v, i) => (most = Math.max(most, Math.abs(v - now[i]))))
    view.before = now
    view.request_paint()
  }
  return most
}

// Whether JupyterLab shows that notebook, and its kernel is idle.
const idle = (name) => {
  const panel = window.jupyterapp?.shell?.currentWidget
  return (
    panel?.context?.path === name &&
    panel.context.isReady &&
    panel.sessionContext.session?.kernel?.status === "idle"
  )
}

// Runs every cell of the notebook shown; it fails when the time is up.
const runAll = (seconds) =>
  Promise.race([
    window.jupyterapp.commands.execute("notebook:run-all-cells"),
    new Promise((_, fail) =>
      setTimeout(() => fail(`cells still run after ${seconds} s`), 1000 * seconds),
    ),
  ])

// Runs the first code cell that has each text; of a text, an old word and a new one, with the
// word replaced.
const run = async (texts) => {
  const {content} = window.jupyterapp.shell.currentWidget
  for (const [text, old, now] of texts.map((one) => [one].flat())) {
    const has = ({type, sharedModel}) => type === "code" && sharedModel.source.includes(text)
    const at = content.widgets.findIndex((cell) => has(cell.model))
    if (at < 0) throw Error(`no cell has ${text}`)
    content.activeCellIndex = at
    const {sharedModel} = content.activeCell.model
    if (old) sharedModel.setSource(sharedModel.source.replace(old, now))
    await Promise.race([
      window.jupyterapp.commands.execute("notebook:run-cell"),
      new Promise((_, fail) => setTimeout(() => fail(`${text} still runs after 200 s`), 200000)),
    ])
  }
}

// By how many pixels the first player reaches below its output.
const scrolled = () => {
  const {scrollHeight, clientHeight} = document
    .querySelector("[data-ready]")
    .closest(".jp-OutputArea-output")
  return scrollHeight - clientHeight
}

// What each code cell of the notebook shown has put out.
const outputs = () =>
  [...window.jupyterapp.shell.currentWidget.context.model.cells]
    .filter((cell) => cell.type === "code")
    .map((cell) => cell.outputs.toJSON())

// Puts an output on the page as VS Code does: its scripts don't run, and then copies of them,
// appended to it.
const append = (html) => {
  const output = document.body.appendChild(document.createElement("div"))
  document.body.prepend(output)
  output.innerHTML = html
  for (const {innerText: text, type} of [...output.querySelectorAll("script")])
    output.appendChild(Object.assign(document.createElement("script"), {text, type})).remove()
}

// Texts, packed for an address of the site's workbench and unpacked again.
const packAndUnpack = async (texts) => {
  const {pack, unpack} = await import(new URL("page.js", location.href).href)
  return Promise.all(texts.map(async (text) => unpack(await pack(text)).catch(() => "refused")))
}
