// The legend and the keyboard shortcuts.
import {STATISTICS} from "./figures.js"
import {makeTerms} from "./il_text.js"

const KEYS = [
  ["Tab, Shift+Tab", "indent or unindent; press Escape before Tab to leave the editor"],
  ["arrow keys, Enter", "choose an element of C, a slot or an edit, and use it as a click does"],
  ["Ctrl+Z, Ctrl+Y", "undo and redo what you typed; the history has all earlier texts"],
]
const PURE = [
  ["live", "registers in use at a line; the compiler may need more: see `registers`"],
  ["colors", "a line and its operations in the bundles have the same color"],
  ["bundle", "a row: operations that run at once in slots x y z w t; a dashed slot is empty"],
  ["MAD, PRED", "multiply-add; the test of the loop. Point at a slot to see the whole operation"],
  ["orange edge", "a bundle that is new in this text"],
  ["gray", "belongs to the previous text"],
  ["hollow mark", "a line that compiles to nothing"],
]
const MEASURED = [
  [
    "cost",
    "percent of the time that is saved if the line takes no time; it depends on what is left to wait for",
  ],
  ["orange element", "incorrect: click it to see its terms, the wrong ones in red"],
  ["busy", "share of the time in which a unit works: ALU, texture, LDS, L2, DRAM"],
  [
    "dots",
    "your edits, faster ones higher; crosses are incorrect, hollow dots are not checked, the ringed one is the fastest",
  ],
]

/** @param {HTMLElement} parent */
export function showLegend(parent) {
  const statistics = STATISTICS.map(([name, , meaning]) => [name, meaning])
  makeTerms(parent, [...PURE, ...MEASURED, ...statistics, ...KEYS])
}
