// IL as text: the word at a column, the meanings of words, and sentences with code in them.
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
 * @param {number} column */
export function wordAt(line, column) {
  const comment = line.search(/;|\/\//)
  if (comment >= 0 && column > comment) return ""
  for (const found of line.matchAll(/[A-Za-z_]\w*(?:\([\w.,+-]*\)\w*)*(?:\[[^\]]*\](?:\.\w+)?)?/g))
    if (found.index <= column && column <= found.index + found[0].length) return found[0]
  return ""
}

/** The meanings of IL's words. */
export class Words {
  /** @param {{opcodes: string[][], others: string[][]}} words */
  constructor({opcodes, others}) {
    this.opcodes = new Map(opcodes.map((entry) => [entry[0], entry]))
    this.others = others.map(([name, pattern, text]) => ({
      name,
      pattern: new RegExp(`^(?:${pattern})$`, "i"),
      text,
    }))
  }

  /** Return the opcode that a word begins with, with or without controls. */
  opcode(word) {
    const names = word.split(/\W/)[0].toLowerCase().split("_")
    for (let end = Math.min(names.length, 5); end > 0; end--) {
      const entry = this.opcodes.get(names.slice(0, end).join("_"))
      if (entry) return entry
    }
    return undefined
  }

  /** Return what a word means, as [name, meaning], or undefined. */
  meaning(word) {
    const entry = this.opcode(word)
    if (entry) {
      const [name, operands, cost, meaning] = entry
      return [name, [operands, meaning, cost].filter((part) => part && part !== "-").join(" · ")]
    }
    const bare = word.replace(/^_/, "").split(".")[0]
    const other = this.others.find(({pattern}) => pattern.test(bare))
    return other && [other.name, other.text]
  }
}
