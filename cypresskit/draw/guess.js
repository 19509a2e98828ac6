// A question with choices that a reader answers before the result is shown: in interactive figures,
// and on pages of lessons.
import {make, makeButton, plain, press, takeFocus, write} from "./shell.js"

/** Ask a question that can be answered once.
 *
 * @param {HTMLElement} box the place for question and answers
 * @param {HTMLElement} host the element that gets the keyboard focus afterwards
 * @param {{question: string, choices: string[]}} texts as HTML
 * @param {(choice: number) => void} made called with the guess
 */
export function askGuess(box, host, texts, made) {
  const {question, choices} = texts
  const words = make(box, "span")
  const group = make(box, "span", {class: "choice", role: "group", "aria-label": plain(question)})
  let guess = null
  let revealed = false
  write(words, question)
  choices.forEach((choice, n) => {
    const button = makeButton(group, host, "", () => {
      if (guess !== null || revealed) return // it can't be changed
      guess = n
      press(group.children, n)
      made(n)
    })
    button.innerHTML = choice
  })
  // If a focused button were hidden, the page would get the focus.
  const release = () => {
    if (group.contains(/** @type {ShadowRoot} */ (box.getRootNode()).activeElement)) takeFocus(host)
  }
  return {
    get guess() {
      return guess
    },
    get revealed() {
      return revealed
    },
    /** Show the guess and the result, and return them as HTML. */
    reveal(right, truth) {
      box.style.minHeight = `${box.offsetHeight}px` // nothing below moves
      const chosen = guess === null ? "" : choices[guess]
      const but = chosen === right ? "and that is right" : `but it is <b>${right}</b>`
      const verdict = chosen ? `You said <b>${chosen}</b>, ${but}: ` : `It is <b>${right}</b>: `
      write(words, verdict + truth)
      release()
      group.hidden = true
      revealed = true
      return verdict + truth
    },
  }
}
