// Additions to a notebook's cells in JupyterLab and Notebook 7, made by load().
import {KINDS, parts} from "./il_colors.js"

// Show how long the running cell has taken and, after 15 seconds, the button that stops it. Explain
// how to restore widgets whose kernel has ended.
;(() => {
  if (window.cypresskitClock) return
  window.cypresskitClock = true
  const RESTORE_HELP =
    "Fields for guesses, sliders and the workbench need a running kernel: in the menu Run, choose " +
    "Run All Cells. Enter your guesses again; your kernels are saved in their files."
  const rule =
    ".jp-InputPrompt[data-works]::after " +
    "{ content: attr(data-works); display: block; white-space: pre }"
  document.head.append(Object.assign(document.createElement("style"), {textContent: rule}))
  let running = null,
    since = 0
  setInterval(() => {
    if (document.hidden) return
    for (const {firstChild: text} of document.querySelectorAll(".jp-OutputArea-output"))
      if (text?.nodeValue === "Error displaying widget: model not found")
        text.nodeValue = RESTORE_HELP
    const first = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")].find((one) =>
      one.textContent.includes("*"),
    )
    if (first !== running) {
      if (running) delete running.dataset.works
      running = first
      since = performance.now()
    }
    const seconds = Math.floor((performance.now() - since) / 1000)
    if (running && seconds > 0)
      running.dataset.works = `${seconds} s${seconds > 15 ? "\n■ stops" : ""}`
  }, 250)
})()

// Highlight IL in cells: the lines between '''. The editor supports only Python, so its elements
// aren't changed: the CSS Custom Highlight API colors ranges of the text. Without it nothing happens.
;(() => {
  if (!window.CSS?.highlights || window.cypresskitColors) return
  window.cypresskitColors = true
  const rules = KINDS.map(
    (kind) => `::highlight(il-${kind}) { color: var(--jp-mirror-editor-${kind}-color) }`,
  )
  // The editor colors the rest as a string.
  rules.push("::highlight(il-rest) { color: var(--jp-content-font-color1) }")
  document.head.append(
    Object.assign(document.createElement("style"), {textContent: rules.join("\n")}),
  )

  // The lines of IL in an editor. Lines far from the screen are missing in the page; if the first
  // ones are, the IL started above.
  const lines = (editor) => {
    let inside = editor.firstElementChild.classList.contains("cm-gap")
    return [...editor.querySelectorAll(".cm-line")].filter((line) => {
      const edge = line.textContent.split("'''").length % 2 === 0
      inside = inside !== edge
      return inside && !edge
    })
  }
  /** @returns {[string, StaticRange][]} ranges, each with its kind */
  const ranges = (line) => {
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT)
    /** @type {[Text, number][]} */
    const nodes = []
    let at = 0
    while (walker.nextNode()) {
      const text = /** @type {Text} */ (walker.currentNode)
      nodes.push([text, at])
      at += text.length
    }
    const place = (offset) => nodes.findLast(([, start]) => start <= offset)
    return parts(line.textContent).map(({kind, start, end}) => {
      const [first, last] = [place(start), place(end - 1)]
      const range = new StaticRange({
        startContainer: first[0],
        startOffset: start - first[1],
        endContainer: last[0],
        endOffset: end - last[1],
      })
      return [kind, range]
    })
  }
  const paint = () => {
    const holdsIL = ({textContent: text}) => text.includes("'''")
    const all = [...document.querySelectorAll(".jp-CodeCell .cm-content")]
      .filter(holdsIL)
      .flatMap(lines)
    const found = all.flatMap(ranges)
    const rest = all.map(
      (line) =>
        new StaticRange({
          startContainer: line,
          startOffset: 0,
          endContainer: line,
          endOffset: line.childNodes.length,
        }),
    )
    CSS.highlights.set("il-rest", Object.assign(new Highlight(...rest), {priority: -1}))
    for (const kind of KINDS) {
      CSS.highlights.set(
        `il-${kind}`,
        new Highlight(...found.filter(([name]) => name === kind).map(([, range]) => range)),
      )
    }
  }
  let soon
  const within = (node) => (node.closest ? node : node.parentElement)?.closest(".cm-content")
  const brings = (node) => within(node) || node.querySelector?.(".cm-content")
  new MutationObserver((changes) => {
    if (!changes.some(({target, addedNodes}) => within(target) || [...addedNodes].some(brings)))
      return
    clearTimeout(soon)
    soon = setTimeout(paint, 50)
  }).observe(document.body, {childList: true, characterData: true, subtree: true})
  paint()
})()
