// Syntax highlighting of IL, for cells of a notebook and for the workbench.

const COMMENT = ";|//" // begins one
const PARTS = new RegExp(
  [
    `(?<comment>(?:${COMMENT}).*)`,
    // The instruction with its modifiers.
    "(?<keyword>^\\s*[A-Za-z_]\\w*(?:\\([\\w.,+-]*\\)\\w*)*)",
    "(?<def>\\b(?:[rlogx]|in|out|cb)\\d*(?:\\[[^\\]]*\\])?(?:\\.[xyzw01_]+)?" +
      "(?:_neg\\(\\w+\\))?(?![\\w(])|\\bv[A-Z]\\w+(?:\\.[xyzw01_]+)?)",
    "(?<number>-?\\b\\d+(?:\\.\\d+)?(?:e-?\\d+)?\\b)",
  ].join("|"),
  "g",
)
export const KINDS = ["comment", "keyword", "def", "number"]

/** A line without its comment. */
export const codeOf = (line) => line.split(new RegExp(COMMENT))[0]

/** The parts of a line that have colors.
 * @param {string} line
 * @returns {{kind: string, start: number, end: number}[]} */
export function parts(line) {
  return [...line.matchAll(PARTS)].map((found) => {
    const kind = KINDS.find((name) => found.groups[name] !== undefined)
    const indent = found[0].length - found[0].trimStart().length
    return {kind, start: found.index + indent, end: found.index + found[0].length}
  })
}

/** What registers of a kernel hold: "a" or "b", fetched from texture 0 or 1; "c", a sum.
 * @param {string[]} lines
 * @returns {Map<string, string>} */
export function matrices(lines) {
  const held = new Map()
  for (const line of lines) {
    const [, texture, fetched] = /^\s*sample_resource\(([01])\)\S* (r\d+)/.exec(line) ?? []
    const [, sum] = /^\s*d?mad\S* (r\d+)\b[^;]*, \1\b[^,;]*(?:;|$)/.exec(line) ?? []
    if (fetched) held.set(fetched, "ab"[texture])
    if (sum) held.set(sum, "c")
  }
  return held
}
