// What every picture shares, whether it plays or is a toy: the page's theme, the keys that it takes
// while the focus is its own, what a screen reader hears, and elements.

const DARK = window.matchMedia("(prefers-color-scheme: dark)")
const CONTRAST = window.matchMedia("(prefers-contrast: more)")

/** Whether the page is dark, and whether it asks for high contrast. JupyterLab, VS Code and the
 * site say so on <body>, Colab on <html>; a plain page follows the reader's setting. */
export function pageLook() {
  const {jpThemeLight, jpThemeName, vscodeThemeKind, theme} = document.body.dataset
  const said =
    jpThemeLight ?? vscodeThemeKind ?? theme ?? document.documentElement.getAttribute("theme")
  const known = said && said !== "auto"
  return {
    dark: known ? /false|dark|contrast$/.test(said) : DARK.matches,
    contrast: CONTRAST.matches || /contrast/i.test(`${jpThemeName} ${vscodeThemeKind}`),
  }
}

/** Let an element follow the page's theme. `changed` is called now, and whenever the theme changes.
 * Returns a function that ends it. */
export function followTheme(host, changed = () => {}) {
  const follow = () => {
    const {dark, contrast} = pageLook()
    host.dataset.look = dark ? "dark" : "light"
    host.toggleAttribute("data-contrast", contrast)
    changed()
  }
  const watch = new MutationObserver(follow)
  const attributeFilter = [
    "data-jp-theme-light",
    "data-jp-theme-name",
    "data-vscode-theme-kind",
    "data-theme",
    "theme",
  ]
  watch.observe(document.body, {attributes: true, attributeFilter})
  watch.observe(document.documentElement, {attributes: true, attributeFilter})
  const settings = [DARK, CONTRAST]
  for (const setting of settings) setting.addEventListener("change", follow)
  follow()
  return () => {
    watch.disconnect()
    for (const setting of settings) setting.removeEventListener("change", follow)
  }
}

/** Whether a key is pressed together with others, by which it means something else. */
const isModified = ({altKey, ctrlKey, metaKey, shiftKey}) =>
  altKey || ctrlKey || metaKey || shiftKey

/** Whether a key presses the control that has the focus. */
const isPressed = (target, {key}) =>
  target.matches("button, a, summary") && [" ", "Enter"].includes(key)

/** What a key does here: an entry of `keys`, if it is pressed alone, and no control that has the
 * focus uses it itself. */
function actOf(keys, event) {
  if (isModified(event)) return undefined
  const target = event.composedPath()[0]
  if (target.matches("select, textarea")) return undefined
  if (isPressed(target, event)) return undefined
  if (target.matches("input") && (target.type !== "range" || event.key !== " ")) return undefined
  return keys[event.key] ?? keys[event.key.toLowerCase()]
}

/** Whether a key is for what has the focus in a picture, and not for the notebook around it. */
function isTaken(keys, event) {
  if (isModified(event) || event.key === "Tab") return false
  const target = event.composedPath()[0]
  if (actOf(keys, event) || target.matches("input, select, textarea")) return true
  return isPressed(target, event)
}

// JupyterLab looks for its shortcuts at the document, before elements see a key, and leaves those
// alone that come from an element with this attribute. The window comes first.
export const SUPPRESS = "data-lm-suppress-shortcuts"
const listeners = new WeakMap()
window.addEventListener(
  "keydown",
  (event) => {
    for (const node of /** @type {Element[]} */ (event.composedPath())) {
      const keys = listeners.get(node)
      if (keys) node.toggleAttribute(SUPPRESS, isTaken(keys, event))
    }
  },
  true,
)

/** Give an element keys: what each does, by its name. On a page of its own a picture hears them
 * wherever the focus is. Returns a function that ends that. */
export function listenKeys(host, keys) {
  const hear = (event) => {
    if (event.defaultPrevented || !host.getClientRects().length) return
    const act = actOf(keys, event)
    if (!act) return
    event.preventDefault()
    event.stopPropagation()
    act()
  }
  listeners.set(host, keys)
  const ears = host.closest(".cypresskit-page") ? [host, document.body] : [host]
  for (const ear of ears) ear.addEventListener("keydown", hear)
  return () => {
    for (const ear of ears) ear.removeEventListener("keydown", hear)
  }
}

/** Give the focus back to what is around a picture: the notebook's cell, or the page. */
export function leave(host) {
  const cell = host.closest(".jp-Cell")
  if (cell) cell.focus({preventScroll: true})
  else host.ownerDocument.activeElement?.blur()
}

/** Take the focus, without scrolling. */
export const takeFocus = (host) => host.focus({preventScroll: true})

/** The words of HTML, as a screen reader hears them. */
export function plain(html) {
  const text = document.createElement("template")
  text.innerHTML = html.replaceAll("<br>", " ")
  return text.content.textContent
}

/** Text as HTML. */
export function escaped(text) {
  const box = document.createElement("span")
  box.textContent = text
  return box.innerHTML
}

const written = new WeakMap()
/** Write HTML into a box. What is written already stays: a browser would lay it out anew. */
export function write(box, html) {
  if (written.get(box) !== html) box.innerHTML = html
  written.set(box, html)
}

const SVG = "http://www.w3.org/2000/svg"
/** Append an element, of SVG if its parent is. */
export function make(parent, tag, attributes = {}, text = "") {
  const drawn = tag === "svg" || parent.namespaceURI === SVG
  const made = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.textContent = text
  return parent.appendChild(made)
}

/** Append a button. After the mouse the keys are `host`'s again. */
export function makeButton(parent, host, text, act, title = "") {
  const made = make(parent, "button", {type: "button", title}, text)
  made.addEventListener("click", ({detail}) => {
    act()
    if (detail) takeFocus(host)
  })
  return made
}

/** Make one of several buttons look pressed. */
export function press(buttons, number) {
  ;[...buttons].forEach((button, n) => {
    button.setAttribute("aria-pressed", String(n === number))
  })
}
