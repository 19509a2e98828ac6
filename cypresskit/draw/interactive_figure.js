// Toys: pictures that respond to the reader's hand, and have no frames or clock.

/** Make an element a toy: it can have the focus, and says what its keys do. */
export function prepareFigure(host, {title, keys}) {
  host.classList.add("cypresskit-figure")
  host.tabIndex = 0
  host.setAttribute("role", "group")
  host.setAttribute("aria-label", `${title}. Keys: ${keys}.`)
}
