// A, B and C of a product that the reader can check by hand. The element of C under the pointer
// highlights its row of A and its column of B, and its sum is written out. Incorrect elements are
// orange.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"

const APART = "A small product that you can check by hand. Other products are tested, too."
const WIDE = 3 // digits: columns with fewer are as wide
const LABEL =
  "C, the product of A at the left and B above. Arrow keys move, Enter shows the terms of an element."

export class SmallProduct {
  /**
   * @param {HTMLElement} parent
   * @param {(row: number, column: number) => void} picked an element of C was clicked */
  constructor(parent, picked) {
    this.picked = picked
    this.box = make(parent, "section", {class: "ckw-small ckw-of-verdict"})
    make(this.box, "p", {class: "ckw-soft"}, APART)
    const attributes = {
      class: "ckw-matrices",
      role: "listbox",
      "aria-label": LABEL,
      onmouseover: ({target}) => target.matches("button") && this.light(target),
      onfocusin: ({target}) => this.light(target),
    }
    this.list = new KeyList(this.box, attributes)
    this.sum = make(this.box, "p", {class: "ckw-sum"})
    /** @type {string[][] | undefined} */
    this.sums = undefined // of each element
  }

  /** Show a product, or none. */
  show(product) {
    this.box.hidden = !product && !this.sums // no text had one
    this.box.inert = !product
    if (!product) return
    const grid = new DocumentFragment()
    const {a, b, c, expected, sums, is_stored_transposed} = product
    const atLeft = is_stored_transposed ? "Aᵀ ↓" : "A ↓" // other messages name A's numbers as it is stored
    this.sums = sums
    const gap = (columns, text = "") =>
      make(grid, "i", {style: `grid-column: span ${columns}`}, text)
    const cells = (matrix, values, row) =>
      values.forEach((value, column) => {
        make(grid, "span", {"data-m": matrix, "data-at": `${row},${column}`}, value)
      })
    const [deep, wide] = [a[0].length, b[0].length]
    const digits = Math.max(...c.flat().map((value) => String(value).length))
    const columns = `repeat(${wide}, minmax(calc(${Math.min(digits, WIDE)}ch + 4px), max-content))`
    this.list.box.style.gridTemplateColumns = `repeat(${deep}, max-content) 6px ${columns}`
    b.forEach((row, k) => {
      gap(deep + 1, k === b.length - 1 ? atLeft : k ? "" : "B →")
      cells("b", row, k)
    })
    gap(deep + 1 + wide).className = "ckw-apart"
    const elements = c.map((row, m) => {
      cells("a", a[m], m)
      gap(1)
      return row.map((value, n) => this.element(grid, m, n, value, expected[m][n]))
    })
    const first = grid.querySelector(".ckw-wrong") ?? elements[0][0]
    this.list.show(grid, elements, first)
    this.light(first)
  }

  element(parent, row, column, value, expected) {
    const wrong = value !== expected
    const state = wrong ? `incorrect: it should be ${expected}` : "correct"
    const attributes = {
      role: "option",
      tabindex: "-1",
      class: wrong ? "ckw-wrong" : "",
      "data-at": `${row},${column}`,
      "aria-label": `C[${row}, ${column}] is ${value}, ${state}`,
      onclick: () => this.picked(row, column),
    }
    return make(parent, "button", attributes, value)
  }

  /** Highlight an element, its row of A and its column of B, and write its sum. */
  light(element) {
    const [row, column] = element.dataset.at.split(",")
    for (const each of this.list.box.children) {
      const {m, at = ""} = each.dataset
      const [y, x] = at.split(",")
      const lit = each === element || (m === "a" && y === row) || (m === "b" && x === column)
      each.classList.toggle("ckw-lit", lit)
    }
    this.sum.textContent = this.sums[row][column]
  }
}
