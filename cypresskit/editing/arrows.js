// Keys in rows of options: arrows move by one, Page Up and Page Down by ten rows, Home to the first
// option, End to the last row, or in a single row to its end.
const PAGE_ROWS = 10

/** Return the option [row, column] to which a key moves from another, or undefined for other keys. The
 * key then does nothing else.
 * @param {KeyboardEvent} event
 * @param {any[][]} rows
 * @param {number[]} from
 * @returns {[number, number] | undefined} */
export function arrowTo(event, rows, [row, column]) {
  if (event.altKey || event.ctrlKey || event.metaKey || !rows.length) return undefined
  const last = rows.length - 1
  const places = {
    ArrowDown: [row + 1, column],
    ArrowUp: [row - 1, column],
    ArrowRight: [row, column + 1],
    ArrowLeft: [row, column - 1],
    PageDown: [row + PAGE_ROWS, column],
    PageUp: [row - PAGE_ROWS, column],
    Home: [0, 0],
    End: [last, last ? column : rows[last].length - 1],
  }
  const place = places[event.key]
  if (!place) return undefined
  keepKey(event)
  const to = Math.max(0, Math.min(place[0], last))
  return [to, Math.max(0, Math.min(place[1], rows[to].length - 1))]
}

/** Keep a key from the page, and from the notebook around it. */
export function keepKey(event) {
  event.preventDefault()
  event.stopPropagation()
}
