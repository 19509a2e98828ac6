// The history of edits, the newest first: what each changed, how fast it is, and a bar of its
// speed. A click brings its text back.
import {make} from "../draw/shell.js"
import {KeyList} from "./key_list.js"

export class History {
  /**
   * @param {HTMLElement} parent
   * @param {(entry: number) => void} recall brings a text back */
  constructor(parent, recall) {
    this.recall = recall
    make(parent, "h3", {}, "Your edits")
    const label = "Your edits. Arrow keys move, Enter brings a text back."
    this.list = new KeyList(parent, {class: "ckw-edits", role: "listbox", "aria-label": label})
  }

  /** @param {{number: number, gflops: number, is_correct: boolean | null, summary: string}[]} entries
   *   `gflops` is 0 unless C is correct; `is_correct` is null for a text that was never checked */
  show(entries) {
    const at = this.list.box.matches(":focus-within") && this.list.option?.dataset.number
    const list = new DocumentFragment()
    const fastest = Math.max(1, ...entries.map(({gflops}) => gflops))
    const options = entries.toReversed().map(({number, gflops, is_correct, summary}) => {
      const kind = gflops === fastest ? "ckw-best" : is_correct === false ? "ckw-wrong" : ""
      const attributes = {
        class: `ckw-edit ${kind}`,
        role: "option",
        tabindex: "-1",
        style: `--part: ${gflops / fastest}`,
        "data-number": number,
        onclick: () => this.recall(number),
      }
      return make(list, "p", attributes, summary)
    })
    const rows = options.map((option) => [option])
    this.list.show(list, rows, options.find(({dataset}) => dataset.number === at) ?? options[0])
  }
}
