// Why there is no answer: said while a page waits for Python, and taken back once it answers.

const PATIENCE_MS = 3000 // before a page without an answer says why

export class Silence {
  /** @param {HTMLElement} place where it is said */
  constructor(place) {
    this.place = place
    this.text = "" // shown last
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.timer = undefined
  }

  /** A message was sent. */
  begin() {
    clearInterval(this.timer)
    this.timer = setInterval(() => this.show(), PATIENCE_MS)
  }

  show() {
    const text = explain()
    if (this.place.textContent === text) return
    this.text = this.place.textContent = text
  }

  /** It is answered, or no answer comes. What others say there stays. */
  end() {
    clearInterval(this.timer)
    if (this.place.textContent === this.text) this.place.textContent = ""
  }
}

/** Return why there is no answer yet, as far as a page can tell, and what to do. */
function explain() {
  const prompts = [...document.querySelectorAll(".jp-InputPrompt")]
  if (prompts.some(({textContent}) => textContent.includes("*")))
    return "No answer yet. Python is running a cell. Your text is kept."
  const advice = " If this message stays, run the first cell and this cell again."
  return `No answer yet: the computer that runs Python is busy. Your text is kept.${prompts.length ? advice : ""}`
}
