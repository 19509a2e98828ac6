// A, B and C of a product that the reader can check by hand. The element of C under the pointer
// highlights its row of A and its column of B, and its sum is written out. Incorrect elements are
// orange.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"

const APART = "A small product that you can check by hand. Other products are tested, too."

export class SmallProduct {
  /**
   * @param {HTMLElement} parent
   * @param {(row: number, column: number) => void} picked an element of C was clicked */
  constructor(parent, picked) {
    this.picked = picked
    this.box = make(parent, "section", {class: "ckw-small ckw-of-product", hidden: ""})
    make(this.box, "p", {class: "ckw-soft"}, APART)
    this.grid = make(this.box, "div", {class: "ckw-matrices", role: "listbox"})
    this.sum = make(this.box, "p", {class: "ckw-sum"})
    this.list = new KeyList(this.grid, {
      chosen: (element) => this.light(element),
      used: (element) => element.click(),
    })
    this.grid.addEventListener("mouseover", ({target}) => {
      if (target.tagName === "BUTTON") this.light(target)
    })
  }

  /** Show a product, or none. */
  show(product) {
    this.box.hidden = !product
    this.grid.replaceChildren()
    if (!product) return
    this.product = product
    const {a, b, c, right} = product
    this.grid.style.gridTemplateColumns = `repeat(${a[0].length}, auto) 6px repeat(${b[0].length}, auto)`
    this.grid.setAttribute(
      "aria-label",
      "C, the product of A at the left and B above. Arrow keys move, Enter shows the terms of an element.",
    )
    const gap = (columns) => make(this.grid, "i", {style: `grid-column: span ${columns}`})
    b.forEach((row, k) => {
      const name = gap(a[0].length + 1)
      if (!k) name.textContent = "B →"
      row.forEach((value, n) => {
        this.cell("b", k, n, value)
      })
    })
    gap(a[0].length + 1 + b[0].length).className = "ckw-apart"
    const elements = c.map((row, m) => {
      a[m].forEach((value, k) => {
        this.cell("a", m, k, value)
      })
      gap(1)
      return row.map((value, n) => this.element(m, n, value, right[m][n]))
    })
    const wrong = elements.flat().find((one) => one.classList.contains("ckw-wrong"))
    const first = wrong ?? elements[0][0]
    this.list.show(elements, first)
    this.light(first)
  }

  cell(matrix, row, column, value) {
    make(this.grid, "span", {"data-m": matrix, "data-at": `${row},${column}`}, String(value))
  }

  element(row, column, value, right) {
    const wrong = value !== right
    const state = wrong ? `incorrect: it should be ${right}` : "correct"
    const button = make(
      this.grid,
      "button",
      {
        type: "button",
        role: "option",
        tabindex: "-1",
        class: wrong ? "ckw-wrong" : "",
        "data-at": `${row},${column}`,
        "aria-label": `C[${row}, ${column}] is ${value}, ${state}`,
      },
      String(value),
    )
    button.addEventListener("click", () => this.picked(row, column))
    return button
  }

  /** Highlight an element, its row of A and its column of B, and write its sum. */
  light(element) {
    const [row, column] = element.dataset.at.split(",")
    for (const each of this.grid.children) {
      const [y, x] = (each.dataset.at ?? "").split(",")
      const {m} = each.dataset
      const lit = each === element || (m === "a" && y === row) || (m === "b" && x === column)
      each.classList.toggle("ckw-lit", lit)
    }
    const {a, b, c, right, k} = this.product
    const terms = a[row].map((value, n) => `${value}·${b[n][column]}`)
    const more = k > terms.length ? " + …" : ""
    const wanted = right[row][column]
    const got = c[row][column]
    const end = got === wanted ? "" : `. It is ${got}.`
    const should = got === wanted ? "=" : "should be"
    const sum = `${terms.join(" + ")}${more} = ${wanted}`
    this.sum.textContent = `C[${row}, ${column}] ${should} ${sum}${end}`
  }
}
