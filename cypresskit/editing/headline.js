// What was found about the text: a sentence, the list of faults, and what a screen reader hears.
import {make} from "../draw/shell.js"
import {makeSentence} from "./il_text.js"

const SPEAK_MS = 900 // without news, before a screen reader hears a message

/** A text as it is heard, or shown where no code can be. */
const asHeard = (text) => text.replaceAll("`", "")

const joined = (...parts) => parts.filter(Boolean).join(" ")

export class Headline {
  /**
   * @param {Record<"head" | "below" | "host", HTMLElement>} places
   * @param {{goTo: (line: number, column: number) => void, markFresh: (name: string) => void}} owner */
  constructor({head, below, host}, owner) {
    this.owner = owner
    this.sentence = make(head, "p", {class: "ckw-verdict ckw-of-headline"})
    this.faults = make(below, "div", {class: "ckw-findings ckw-of-findings"})
    this.spoken = make(host, "p", {class: "ckw-heard", "aria-live": "polite"})
    this.text = ""
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined
  }

  /** Show a verdict of a kind, "right", "wrong" or "fault", what is said aside, and the list of the
   * faults. Beside a correct kernel's speed its verdict alone has room. */
  show(kind, verdict, aside, faults, spoken = joined(verdict, aside)) {
    this.text = joined(verdict, aside)
    this.sentence.dataset.kind = kind
    this.sentence.title = asHeard(this.text)
    this.sentence.replaceChildren()
    makeSentence(this.sentence, "b", {}, verdict)
    if (kind !== "right") makeSentence(this.sentence, "span", {}, ` ${aside}`)
    this.owner.markFresh("headline")
    this.list(faults)
    if (kind === "right") makeSentence(this.faults, "p", {class: "ckw-soft"}, aside)
    this.speak(spoken)
  }

  /** Whether the sentence is not cut off. */
  get isWhole() {
    return this.sentence.scrollHeight <= this.sentence.clientHeight + 1
  }

  /** List faults or findings, with buttons to their lines. The first isn't repeated: the sentence
   * says it. */
  list(faults) {
    this.faults.replaceChildren()
    this.owner.markFresh("findings")
    faults.forEach(({line, column, message, advice}, n) => {
      const isRead = n === 0 && this.isWhole
      if (isRead && !line && !advice) return
      const item = make(this.faults, "p")
      const onclick = () => this.owner.goTo(line, column)
      if (line) make(item, "button", {onclick}, `${isRead ? "Go to line" : "line"} ${line}`)
      if (!isRead) makeSentence(item, "span", {}, ` ${message}`)
      if (advice) makeSentence(item, "span", {class: "ckw-advice"}, ` ${advice}`)
    })
  }

  /** Let a screen reader hear a message once typing pauses. */
  speak(text) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.speakNow(text), SPEAK_MS)
  }

  /** Let it hear a message at once. */
  speakNow(text) {
    this.spoken.textContent = ""
    this.spoken.textContent = asHeard(text)
  }

  /** The text has changed: what isn't heard yet is about the previous one. */
  hush() {
    clearTimeout(this.timer)
    this.spoken.textContent = ""
    this.sentence.dataset.kind = ""
    this.wait("Checking …")
  }

  /** Show what is known until there is a verdict. */
  wait(text) {
    this.text = this.sentence.textContent = this.sentence.title = text
  }
}
