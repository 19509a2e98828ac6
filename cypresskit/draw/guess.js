// A guess that is asked for before something is shown: a question with its choices, and in the end
// what came out. In a toy, and on a page that shows a lesson.
import {make, makeButton, plain, press, takeFocus, write} from "./shell.js"

/** A question in a box, to be answered once.
 *
 * @param {HTMLElement} box where question and answers stand
 * @param {HTMLElement} host what the keys belong to
 * @param {{question: string, choices: string[]}} asked as HTML
 * @param {(choice: number) => void} made what happens then
 */
export function askGuess(box, host, asked, made) {
  const {question, choices} = asked
  const words = make(box, "span")
  const group = make(box, "span", {class: "choice", role: "group", "aria-label": plain(question)})
  let guess = null
  let revealed = false
  write(words, question)
  choices.forEach((choice, n) => {
    const button = makeButton(group, host, "", () => {
      if (guess !== null || revealed) return // a guess is a guess
      guess = n
      press(group.children, n)
      made(n)
    })
    button.innerHTML = choice
  })
  // A button that hides would leave the focus to the page, and the next key with it.
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
    /** Say what was guessed and what it is, and return that as HTML. */
    reveal(right, truth) {
      box.style.minHeight = `${box.offsetHeight}px` // nothing below moves
      const said = guess === null ? "" : choices[guess]
      const but = said === right ? "and that is right" : `but it is <b>${right}</b>`
      const verdict = said ? `You said <b>${said}</b>, ${but}: ` : `It is <b>${right}</b>: `
      write(words, verdict + truth)
      release()
      group.hidden = true
      revealed = true
      return verdict + truth
    },
  }
}
