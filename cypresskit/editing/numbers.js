// Numbers as they are shown.

/** A share, from 0 to 1. */
export function percent(share) {
  return `${Math.round(100 * share)} %`
}

export function inWhole(number) {
  return Math.round(number).toLocaleString("en")
}
