// The terms of an element of C.
import {make} from "../draw/shell.js"

export class Terms {
  /**
   * @param {HTMLElement} parent
   * @param {{goTo: (line: number, column?: number) => void, light: (lines: Set<number>) => void}}
   *   owner */
  constructor(parent, owner) {
    this.owner = owner
    this.box = make(parent, "section", {class: "ckw-terms ckw-of-verdict"})
    this.hide()
  }

  hide() {
    this.box.hidden = true
  }

  /** Show the terms of an element, the wrong ones in red. */
  show({message, notes = [], terms = [], more, problem}) {
    this.box.hidden = false
    this.box.replaceChildren()
    make(this.box, "h3", {}, problem ?? message)
    for (const note of notes) make(this.box, "p", {class: "ckw-fault"}, note)
    const list = make(this.box, "div", {class: "ckw-termlist"})
    for (const {text, is_correct, note, line, lines = [line]} of terms) {
      const light = () => this.owner.light(new Set(lines))
      const button = make(list, "button", {
        class: is_correct ? "ckw-term" : "ckw-term ckw-fault",
        title: note,
        onclick: () => this.owner.goTo(line || 1),
        onmouseenter: light,
        onfocus: light,
      })
      make(button, "small", {}, line ? `line ${line}: ` : "")
      make(button, "span", {}, text)
    }
    if (more) make(list, "span", {class: "ckw-soft"}, `and ${more} more`)
  }
}
