// A lesson's question on a page without a kernel: a field or choices. The answer is taken from the
// result further down on the page, which is folded.
import {askGuess} from "./guess.js"
import {escaped, make} from "./shell.js"

/** Write the guess into the results that answer a question. Returns the sentence with guess and
 * result, or "" if there is no result. */
function answer(question, guess) {
  let sentence = ""
  for (const box of document.querySelectorAll(".cell_output pre"))
    for (const text of textsOf(box)) {
      const at = text.data.indexOf(question)
      if (at < 0) continue
      const rest = text.data.slice(at + question.length)
      const [all, before, it] = /^( |: )(it is)/i.exec(rest) ?? []
      if (!all) continue
      const you = it === "It is" ? "You" : "you"
      const end = at + question.length
      const start = `${before}${you} said ${guess}, and it is`
      const answered = start + rest.slice(all.length)
      text.data = text.data.slice(0, end) + answered
      sentence ||= answered.split("\n")[0].replace(/^:? /, "")
    }
  return sentence && sentence[0].toUpperCase() + sentence.slice(1)
}

function textsOf(box) {
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT)
  /** @type {Text[]} */
  const texts = []
  while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode))
  return texts
}

/** Bring a question to life. */
export function beginGuess(box, {question, choices, unit}) {
  box.classList.add("cypresskit-guess")
  const noted = (guess) => {
    const sentence = answer(question, guess)
    status.textContent = `${sentence || `Noted: ${guess}.`} The whole result is below.`
  }
  if (choices.length) {
    const asHtml = {
      question: `<b>Your guess:</b> ${escaped(question)}`,
      choices: choices.map(escaped),
    }
    askGuess(make(box, "span"), box, asHtml, (n) => noted(choices[n]))
  } else {
    const label = make(box, "label")
    make(label, "b", {}, "Your guess: ")
    label.append(`${question} `)
    const field = /** @type {HTMLInputElement} */ (make(label, "input", {size: 8}))
    label.append(` ${unit}`)
    field.addEventListener("change", () => {
      const readable = /\d/.test(field.value)
      field.setAttribute("aria-invalid", String(!readable && field.value !== ""))
      field.readOnly = readable // it can't be changed
      if (readable) noted(field.value.trim())
      else status.textContent = field.value ? "That can't be read as a number." : ""
    })
  }
  const status = make(box, "span", {role: "status"})
}
