// IL as text: the word at a column, and sentences with code in them.
import {codeOf} from "../draw/il_colors.js"
import {make} from "../draw/shell.js"

/** Append a sentence, in which code is between backticks. */
export function makeSentence(parent, tag, attributes, text) {
  const made = make(parent, tag, attributes)
  text.split(/`([^`\n]+)`/).forEach((part, n) => {
    if (n % 2) make(made, "code", {}, part)
    else made.append(part)
  })
  return made
}

/** Append a list of terms and their meanings. */
export function makeTerms(parent, rows) {
  const list = make(parent, "dl")
  for (const [term, meaning] of rows) {
    const entry = make(list, "div")
    makeSentence(entry, "dt", {}, term)
    makeSentence(entry, "dd", {}, ` ${meaning}`)
  }
}

/** The word around a column (from 0) of a line, outside of its comment; "" if there is none.
 * @param {string} line
 * @param {number} column
 * @param {RegExp} token finds all words */
export function wordAt(line, column, token) {
  for (const found of codeOf(line).matchAll(token))
    if (found.index <= column && column <= found.index + found[0].length) return found[0]
  return ""
}
