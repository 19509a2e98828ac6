// What was found about the text: a sentence, the list of faults, and what a screen reader hears.
import {make} from "../draw/shell.js"

const SPEAK_MS = 900 // without news, before a screen reader hears a message
const SEEN = 150 // characters of a sentence that are visible

export class Headline {
  /**
   * @param {Record<"head" | "below" | "host", HTMLElement>} places
   * @param {{goTo: (line: number, column: number) => void, markFresh: (name: string) => void}} owner */
  constructor({head, below, host}, owner) {
    this.owner = owner
    this.sentence = make(head, "p", {class: "ckw-verdict ckw-of-headline"})
    this.faults = make(below, "div", {class: "ckw-findings ckw-of-findings"})
    this.spoken = make(host, "p", {class: "ckw-heard", "aria-live": "polite"})
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined
  }

  /** Show a sentence of a kind, "right", "wrong" or "fault", and the list of the faults. */
  show(kind, text, faults, spoken = text) {
    this.sentence.dataset.kind = kind
    this.sentence.textContent = text
    this.sentence.title = text
    this.owner.markFresh("headline")
    this.list(faults)
    this.speak(spoken)
  }

  /** List faults or findings, with buttons to their lines. The sentence isn't repeated. */
  list(faults) {
    this.faults.replaceChildren()
    this.owner.markFresh("findings")
    const sentence = this.sentence.textContent
    const read = sentence.length <= SEEN ? sentence : ""
    for (const {line, column, message, advice} of faults) {
      const known = read.includes(message.replace(/\.$/, ""))
      if (known && !line && !advice) continue
      const item = make(this.faults, "p")
      const onclick = () => this.owner.goTo(line, column)
      if (line) make(item, "button", {onclick}, `${known ? "Go to line" : "line"} ${line}`)
      if (!known) make(item, "span", {}, ` ${message.replace(read, "")}`)
      if (advice) make(item, "span", {class: "ckw-advice"}, ` ${advice}`)
    }
  }

  /** Let a screen reader hear a message once typing pauses. */
  speak(text) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.spoken.textContent = text
    }, SPEAK_MS)
  }

  /** The text has changed: what isn't heard yet is about the previous one. */
  hush() {
    clearTimeout(this.timer)
    this.spoken.textContent = ""
    this.sentence.dataset.kind = ""
    this.sentence.textContent = this.sentence.title = "Checking …"
  }
}
