// What all pictures share: the page's theme, keyboard handling, texts for screen readers, and making
// elements.

const DARK = window.matchMedia("(prefers-color-scheme: dark)")
const CONTRAST = window.matchMedia("(prefers-contrast: more)")

/** Whether the page is dark, and whether it has high contrast. JupyterLab, VS Code and the site set
 * attributes of <body>, Colab of <html>; a plain page follows the reader's settings. */
export function pageLook() {
  const {jpThemeLight, jpThemeName, vscodeThemeKind, theme} = document.body.dataset
  const mode =
    jpThemeLight ?? vscodeThemeKind ?? theme ?? document.documentElement.getAttribute("theme")
  const known = mode && mode !== "auto"
  return {
    dark: known ? /false|dark|contrast$/.test(mode) : DARK.matches,
    contrast: CONTRAST.matches || /contrast/i.test(`${jpThemeName} ${vscodeThemeKind}`),
  }
}

/** Let an element follow the page's theme. `changed` is called now and after each change. Returns a
 * function that stops it. */
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

/** Whether a modifier is pressed, so that the key means something else. */
const isModified = ({altKey, ctrlKey, metaKey, shiftKey}) =>
  altKey || ctrlKey || metaKey || shiftKey

/** Whether a key is no command of the notebook's, and doesn't move the focus. */
export const isSingle = ({altKey, ctrlKey, metaKey, key}) =>
  !(altKey || ctrlKey || metaKey || key === "Tab")

/** Whether a key activates the focused control. */
const isPressed = (target, {key}) =>
  target.matches("button, a, summary") && [" ", "Enter"].includes(key)

/** The action of a key: an entry of `keys`, unless a modifier is pressed or the focused control uses
 * the key. */
function actOf(keys, event) {
  if (isModified(event)) return undefined
  const target = event.composedPath()[0]
  if (target.matches("select, textarea")) return undefined
  if (isPressed(target, event)) return undefined
  if (target.matches(".picture, .side") && event.key.startsWith("Arrow")) return undefined // scrolls
  if (target.matches("input") && (target.type !== "range" || event.key !== " ")) return undefined
  return keys[event.key] ?? keys[event.key.toLowerCase()]
}

/** Whether a key is for the picture, and not for the notebook around it. */
function isTaken(keys, event) {
  if (isModified(event) || event.key === "Tab") return false
  const target = event.composedPath()[0]
  if (actOf(keys, event) || target.matches("input, select, textarea")) return true
  return isPressed(target, event)
}

// JupyterLab handles its shortcuts at the document, before elements get a key. It ignores keys from
// elements with this attribute. The window's listeners run first.
const SUPPRESS = "data-lm-suppress-shortcuts"
const takers = new WeakMap()
window.addEventListener(
  "keydown",
  (event) => {
    for (const node of /** @type {Element[]} */ (event.composedPath())) {
      const takes = takers.get(node)
      if (takes) node.toggleAttribute(SUPPRESS, takes(event))
    }
  },
  true,
)

/** Keep keys from the notebook: those for which `takes(event)` is true.
 * @param {HTMLElement} host
 * @param {(event: KeyboardEvent) => boolean} takes */
export const keepKeys = (host, takes) => takers.set(host, takes)

/** Let an element handle keys: `keys` maps names to actions. On its own page a picture handles them
 * wherever the focus is. Returns a function that stops it. */
export function listenKeys(host, keys) {
  const handle = (event) => {
    if (event.defaultPrevented || !host.getClientRects().length) return
    const act = actOf(keys, event)
    if (!act) return
    event.preventDefault()
    event.stopPropagation()
    act()
  }
  keepKeys(host, (event) => isTaken(keys, event))
  const targets = host.closest(".cypresskit-page") ? [host, document.body] : [host]
  for (const target of targets) target.addEventListener("keydown", handle)
  return () => {
    for (const target of targets) target.removeEventListener("keydown", handle)
  }
}

/** Return the focus to the notebook's cell, or to the page. */
export function leave(host) {
  const cell = host.closest(".jp-Cell")
  if (cell) cell.focus({preventScroll: true})
  else host.ownerDocument.activeElement?.blur()
}

/** Take the focus, without scrolling. */
export const takeFocus = (host) => host.focus({preventScroll: true})

/** The text of HTML, for screen readers. */
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
/** Write HTML into a box, unless it is there already: that avoids a new layout. */
export function write(box, html) {
  if (written.get(box) !== html) box.innerHTML = html
  written.set(box, html)
}

const SVG = "http://www.w3.org/2000/svg"
/** Append an element. It is an SVG element if its parent is one. A function among the attributes, such
 * as `onclick`, listens to an event. */
export function make(parent, tag, attributes = {}, text = "") {
  const drawn = tag === "svg" || parent.namespaceURI === SVG
  const made = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag)
  if (tag === "button") made.setAttribute("type", "button")
  for (const [name, value] of Object.entries(attributes))
    if (typeof value === "function") made.addEventListener(name.slice(2), value)
    else made.setAttribute(name, value)
  made.textContent = text
  return parent.appendChild(made)
}

/** Append a button. After a mouse click, `host` gets the focus. */
export function makeButton(parent, host, text, act, title = "") {
  const made = make(parent, "button", {title}, text)
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
