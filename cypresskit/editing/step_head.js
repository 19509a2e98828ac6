// What a step of the climb says above its workbench: its idea and what it asks for; and below it
// its views.
import {followTheme, make} from "../draw/shell.js"
import {makeSentence} from "./il_text.js"

export class StepHead {
  /**
   * @param {HTMLElement} parent
   * @param {HTMLElement} below where views are shown
   * @param {(message: object) => void} post */
  constructor(parent, below, post) {
    this.post = post
    this.box = make(parent, "section", {class: "ckw-step"})
    this.idea = make(this.box, "p", {class: "ckw-idea"})
    this.pars = make(this.box, "p", {class: "ckw-pars"})
    this.hint = make(this.box, "p", {class: "ckw-hint", hidden: ""})
    this.buttons = make(below, "p", {class: "ckw-play"})
    this.played = make(below, "div", {class: "ckw-played"})
  }

  /** @param {Record<string, any>} step */
  show(step) {
    this.step = step
    const {title, idea, views, name} = step
    this.idea.replaceChildren()
    make(this.idea, "b", {}, /^\d/.test(name) ? `${name} ${title}. ` : `${title}. `)
    makeSentence(this.idea, "span", {}, idea)
    this.buttons.replaceChildren()
    make(this.buttons, "span", {class: "ckw-name"}, "Play it: ")
    for (const [view, words] of views) {
      const button = make(this.buttons, "button", {type: "button"}, words)
      button.addEventListener("click", () => {
        this.played.textContent = "It is being made …"
        this.post({type: "play", view})
      })
    }
    const climb = make(this.buttons, "button", {type: "button"}, "your climb, to send round")
    climb.title = "One picture of the steps that you kept, with buttons that save it"
    climb.addEventListener("click", () => this.post({type: "play", view: "climb"}))
    const book = make(
      this.buttons,
      "button",
      {type: "button", class: "ckw-book"},
      "start from the book's",
    )
    book.title = "Your text stays in the history below"
    book.addEventListener("click", () => this.post({type: "book"}))
    this.showPars()
  }

  /** The text is another: nothing is known of it yet. */
  age() {
    this.gflops = undefined
    this.right = false
    this.showPars()
  }

  /** How fast the text is, and whether it is right. */
  clocks(gflops, right) {
    this.gflops = gflops
    this.right = right
    this.showPars()
  }

  showPars() {
    const {pars, within, kept, brought, hint} = this.step
    this.pars.replaceChildren()
    const shown = (gflops) => Math.round(gflops).toLocaleString("en")
    const names = {right: "to keep", good: "the book's", paper: "the paper's"}
    for (const [name, words] of Object.entries(names)) {
      if (!pars[name]) continue
      const speed = this.right ? (this.gflops ?? 0) : 0
      const reached = this.right && Math.round(speed) >= Math.round(pars[name])
      const near = this.right && !reached && speed >= pars[name] * (1 - within)
      const state = reached ? "✓ " : near ? `within ${100 * within} % of ` : ""
      make(
        this.pars,
        "span",
        {class: reached || near ? "ckw-reached" : ""},
        `${state}${words} ${shown(pars[name])}`,
      )
    }
    make(this.pars, "span", {}, "Gflop/s")
    if (kept) {
      const speed = kept.gflops ? `: ${shown(kept.gflops)} Gflop/s` : ""
      const from = brought ? `, ${brought}` : ""
      make(this.pars, "b", {class: "ckw-kept"}, `kept as your ${this.step.name}${speed}${from}`)
    }
    this.hint.replaceChildren()
    makeSentence(this.hint, "span", {}, `To go on: ${hint}`)
    this.hint.hidden = !hint || !this.right || this.gflops >= pars.good * (1 - within)
  }

  /** A view that was asked for, as a page of its own in this page's theme, since what is in a frame
   * can't look around it; or a picture. */
  view({page, problem, picture}) {
    this.stopTheme?.()
    this.played.replaceChildren()
    if (picture) {
      this.played.innerHTML = picture
      this.played.scrollIntoView({block: "nearest"})
      return
    }
    if (problem) {
      make(this.played, "p", {class: "ckw-bad"}, problem)
      return
    }
    const place = make(this.played, "div")
    let shown
    this.stopTheme = followTheme(place, () => {
      if (place.dataset.look === shown) return
      shown = place.dataset.look
      place.replaceChildren() // a frame that is given another page while out of sight may stay blank
      const frame = /** @type {HTMLIFrameElement} */ (
        make(place, "iframe", {title: "A view of this kernel", sandbox: "allow-scripts"})
      )
      frame.srcdoc = page
        .replace("<html ", `<html style="color-scheme: ${shown}" `)
        .replace("<body ", `<body data-theme="${shown}" data-look="${shown}" `)
    })
    place.scrollIntoView({block: "nearest"})
  }

  end() {
    this.stopTheme?.()
  }
}
