// What all interactive figures share.

/** Make an element focusable, and describe its keys for screen readers. */
export function prepareFigure(host, {title, keys}) {
  host.classList.add("cypresskit-figure")
  host.tabIndex = 0
  host.setAttribute("role", "group")
  host.setAttribute("aria-label", `${title}. Keys: ${keys}.`)
}
