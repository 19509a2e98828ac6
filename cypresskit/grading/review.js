// The page on which a teacher reads and decides. Every decision is kept in the browser at once, as
// rows of the table that it will be in, until that has them: so it survives a reload, a closed tab
// and a new page, and another tab shows it.

export {} // a module: its names are its own

/** @typedef {{id: string, student: string, seen: string}} Person seen: a key of what was read */

const FOLDER = `${location.pathname} ` // begins what belongs to this folder of grades
const DOWNLOADED = `${FOLDER}downloaded`

/** @type {(what: string, root?: ParentNode) => any[]} */
const all = (what, root = document) => [...root.querySelectorAll(what)]

/** What a browser keeps; only as long as the page is open, if it keeps nothing. */
class Kept {
  constructor() {
    this.isLasting = true
    /** @type {Map<string, string>} */
    this.own = new Map()
  }

  /** @param {string} key */
  get(key) {
    try {
      return this.own.get(key) ?? localStorage.getItem(key)
    } catch {
      return null
    }
  }

  /** @param {string} key @param {string | null} text which null removes */
  set(key, text) {
    this.own.delete(key)
    try {
      if (text === null) localStorage.removeItem(key)
      else localStorage.setItem(key, text)
    } catch {
      this.isLasting = false
      if (text !== null) this.own.set(key, text)
    }
  }
}

/** A card: what some students wrote, and the decision on it. */
class Card {
  /** @param {HTMLElement} article @param {Section} section */
  constructor(article, section) {
    this.article = article
    this.section = section
    /** @type {Person[]} */
    this.people = JSON.parse(article.dataset.people ?? "").map(
      (/** @type {string[]} */ [id, student, seen]) => ({id, student, seen}),
    )
    /** @type {HTMLInputElement[]} */
    const inputs = all("input", article)
    this.fields = inputs.slice(0, -1)
    this.remark = inputs[inputs.length - 1]
    this.why = this.fields.find((field) => field.dataset.label === "why")
    this.isOpen = false // waits for points
    this.isNew = false // isn't in the table
  }

  get names() {
    return this.people.length === 1 ? this.people[0].student : `${this.people.length} students`
  }

  /** Whether anything of it can be seen, below the head. */
  get isInSight() {
    const {top, bottom} = this.article.getBoundingClientRect()
    return bottom > this.section.head.getBoundingClientRect().bottom && top < innerHeight
  }

  get inputs() {
    return [...this.fields, this.remark]
  }

  /** The rows of the table, each with its cells. */
  *rows() {
    const last = this.fields[this.fields.length - 1]
    for (const person of this.people)
      for (const field of this.fields) {
        const cells = [points(field), field === last ? this.remark.value.trim() : "", person.seen]
        const before = [field.defaultValue, field === last ? this.remark.defaultValue : ""]
        const isNew = cells[0] !== before[0] || cells[1] !== before[1]
        yield {person, field, cells, before, isNew, key: `${FOLDER}${person.id} ${field.name}`}
      }
  }

  /** Show what the table has, or the browser keeps; of equal work, what it keeps of any student. */
  read() {
    for (const input of this.inputs) input.value = input.defaultValue
    for (const {key, field, person, before} of [...this.rows()].reverse()) {
      const text = kept.get(key)
      if (!text) continue
      const [given, remark, seen] = JSON.parse(text)
      if (seen !== person.seen) continue
      if (given === before[0] && remark === before[1]) kept.set(key, null) // the table has it
      field.value = given
      if (field === this.fields[this.fields.length - 1]) this.remark.value = remark
    }
    this.update()
  }

  /** Keep what has been decided. */
  keep() {
    for (const {key, cells, isNew} of this.rows())
      kept.set(key, isNew ? JSON.stringify([...cells, new Date().toISOString()]) : null)
    kept.set(DOWNLOADED, null)
    this.update()
    tell()
  }

  /** Let the page show what this card holds now. */
  update() {
    const {isOpen, isNew} = this
    for (const field of this.fields) field.setAttribute("aria-invalid", `${isWrong(field)}`)
    this.isOpen = Boolean(this.why && !points(this.why) && !("empty" in this.article.dataset))
    this.isNew = [...this.rows()].some((row) => row.isNew)
    this.article.classList.toggle("done", Boolean(this.why && points(this.why)))
    newCards += Number(this.isNew) - Number(isNew)
    const more = Number(this.isOpen) - Number(isOpen)
    if (more) this.section.count(more)
  }
}

/** An exercise, or what stands outside of all. */
class Section {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element
    this.open = 0
    /** @type {HTMLElement} */
    this.head = all("header", element)[0]
    /** @type {Card | undefined} */
    this.current = undefined // gets the keys
    this.link = all("#list a").find((link) => link.hash === `#${element.id}`)
    this.cards = all("article", element).map((article) => new Card(article, this))
  }

  /** Scroll to the current card, below the head as high as that is now. */
  bring() {
    this.element.style.setProperty("--head", `${this.head.offsetHeight + 12}px`)
    this.current?.article.scrollIntoView()
  }

  /** @param {Card} card */
  choose(card) {
    this.current?.article.removeAttribute("aria-current")
    this.current = card
    card.article.setAttribute("aria-current", "true")
  }

  /** @param {number} more cards that wait for points */
  count(more) {
    this.open += more
    const hasSentences = this.cards.some((card) => card.why)
    this.link.querySelector("span").textContent = this.open || (hasSentences ? "\u2713" : "")
  }
}

/** @type {string[][]} the rows of the table */
const others = JSON.parse(all("#others")[0].textContent)
let newCards = 0 // that aren't in the table
let said = "" // on what was done last
const kept = new Kept()
const sections = all("section").map((element) => new Section(element))
/** @type {Map<Element, Card>} */
const cards = new Map()
let [here] = sections // the one that is shown
/** @type {Map<string, Card>} */
const byKey = new Map()
/** @type {[Card, HTMLInputElement, string][][]} */
const past = [] // what undo brings back

/** What a field holds as points, or has in the table if these can't be.
 * @param {HTMLInputElement} field */
const points = (field) =>
  isWrong(field) ? field.defaultValue : field.value.trim().replace(",", ".")

/** @param {HTMLInputElement} field */
function isWrong(field) {
  const text = field.value.trim().replace(",", ".")
  const {least, most} = field.dataset
  return text !== "" && !(Number(text) >= Number(least) && Number(text) <= Number(most))
}

/** Say how much is where, and what was done.
 * @param {string} [done] if this is new */
function tell(done = said) {
  said = done
  all("#told")[0].textContent = said && `${said} ${here.open} left here.`
  const [how] = all("#kept")
  const count = newCards === 1 ? "1 decision" : `${newCards} decisions`
  if (!newCards) how.textContent = others.length ? "All decisions are in the table." : ""
  else if (kept.get(DOWNLOADED))
    how.textContent = `${count} downloaded: save the file beside grades.csv, and run the command again.`
  else if (kept.isLasting) how.textContent = `${count} in this browser alone: download the table.`
  else
    how.textContent = `${count} in this tab alone, since this browser keeps nothing: download now.`
}

/** Give an input another value.
 * @param {[Card, HTMLInputElement, string][]} values @param {boolean} [isUndo] */
function enter(values, isUndo) {
  if (!isUndo) past.push(values.map(([card, input]) => [card, input, input.value]))
  for (const [card, input, value] of values) {
    input.value = value
    card.keep()
  }
}

/** @param {Card} card @param {string} label @param {string} value */
function decide(card, label, value) {
  const input = card.fields.find((field) => field.dataset.label === label)
  if (!input) return
  enter([[card, input, value]])
  if (label === "why") move(card, 1, true)
  tell(`${card.names}: ${label} ${value}.`)
}

/** @param {Event} event */
const cardOf = (event) =>
  cards.get(/** @type {Element} */ (event.target).closest("article") ?? document.body)

function undo() {
  const values = past.pop()
  if (!values) return
  enter(values, true)
  const [[card]] = values
  location.hash = card.section.element.id
  show(card)
  tell(`Undone: ${values.length === 1 ? card.names : `${values.length} cards`}.`)
}

/** Go to another card of an exercise: the next one, or the next that is open.
 * @param {Card} card @param {number} step @param {boolean} [isOpen] */
function move(card, step, isOpen) {
  const {cards} = card.section
  let n = cards.indexOf(card) + step
  while (isOpen && cards[n] && !cards[n].isOpen) n += step
  if (cards[n]) focus(cards[n])
}

/** @param {Card} card */
function focus(card) {
  card.section.choose(card)
  card.article.focus({preventScroll: true})
  card.section.bring()
}

/** Show the section that the address names, with a card, or the open one where the teacher was, or
 * the first open one.
 * @param {Card} [chosen] */
function show(chosen) {
  const id = decodeURIComponent(location.hash.slice(1))
  const before = here
  here = sections.find((section) => section.element.id === id) ?? sections[0]
  for (const section of sections) {
    section.element.hidden = section !== here
    section.link.toggleAttribute("aria-current", section === here)
  }
  here.link.scrollIntoView({block: "nearest"})
  scrollTo(0, 0)
  const open = here.cards.filter((each) => each.isOpen)
  const last = here.current?.isOpen || !open.length ? here.current : open[0]
  const card = chosen ?? last ?? here.cards[0]
  if (card) focus(card)
  tell(here === before ? said : "")
}

/** @param {number} step */
function turn(step) {
  const next = sections[sections.indexOf(here) + step]
  if (next) location.hash = next.element.id
}

/** Keys are for the current card, wherever the focus is, but for what needs them itself.
 * @param {KeyboardEvent} event */
function press(event) {
  const {key, altKey, ctrlKey, metaKey} = event
  const target = /** @type {HTMLElement} */ (event.target)
  if (altKey || (ctrlKey || metaKey) !== (key === "z")) return
  const card = here.current
  const isBack = target.tagName === "INPUT" && ["Enter", "Escape"].includes(key)
  if (target.matches("input, [tabindex]:not(article)") && !isBack) return
  if (target.matches("a, button, summary") && key === "Enter") return
  /** @type {Record<string, () => void>} */
  const keys = {ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), u: undo, z: undo}
  /** @type {Record<string, (card: Card) => void>} */
  const onCard = {
    Enter: (card) => card.remark.focus(),
    "+": (card) => decide(card, "answer", "1"),
    "-": (card) => decide(card, "answer", "0"),
    ArrowDown: (card) => move(card, 1),
    ArrowUp: (card) => move(card, -1),
  }
  for (const digit of "012") onCard[digit] = (card) => decide(card, "why", digit)
  if (keys[key]) keys[key]()
  else if (!card || !(onCard[key] || isBack)) return
  // Nothing is decided on a card that can't be seen.
  else if (isBack || !card.isInSight) focus(card)
  else onCard[key](card)
  event.preventDefault()
}

/** @param {string} text */
const quoted = (text) => `"${text.replaceAll('"', '""')}"`
/** A spreadsheet runs no formula in it: `safe` in decisions.py.
 * @param {string} text */
const harmless = (text) => (/^\s*['=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text)

/** The table: what it had when this page was made, and what the browser keeps. */
function table() {
  /** @type {Map<string, string[]>} */
  const rows = new Map()
  for (const row of others) rows.set(`${FOLDER}${row[0]} ${row[2]}`, row)
  for (const section of sections)
    for (const card of section.cards)
      for (const {key, person, field, cells, isNew} of card.rows()) {
        const [given, remark, seen] = cells
        if (!isNew) continue
        const when = JSON.parse(kept.get(key) ?? "[]")[3] ?? new Date().toISOString()
        rows.set(key, [person.id, person.student, field.name, given, harmless(remark), seen, when])
      }
  const head = ["id", "student", "exercise", "points", "remark", "seen", "when"]
  return `\ufeff${[head, ...rows.values()].map((row) => `${row.map(quoted).join(",")}\r\n`).join("")}`
}

function save() {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([table()], {type: "text/csv"}))
  link.download = "decisions.csv"
  link.click()
  kept.set(DOWNLOADED, "yes")
  tell()
}

for (const section of sections) {
  section.count(0)
  for (const card of section.cards) {
    cards.set(card.article, card)
    card.read()
    for (const {key} of card.rows()) byKey.set(key, card)
  }
}
show()
// What the head shows is folded and unfolded.
const heads = new ResizeObserver(() => here.bring())
for (const {head} of sections) heads.observe(head)
// The browser takes the focus to what the address names.
addEventListener("load", () => setTimeout(show))
addEventListener("hashchange", () => show())
addEventListener("keydown", press)
addEventListener("focusin", (event) => {
  const card = cardOf(event)
  card?.section.choose(card)
})
addEventListener("input", (event) => {
  const card = cardOf(event)
  const field = /** @type {HTMLInputElement} */ (event.target)
  if (!card) return
  card.keep()
  const {label, least, most} = field.dataset
  const fault = `${field.value} isn't kept: points for ${label} are from ${least} to ${most}.`
  tell(!label ? "" : isWrong(field) ? fault : `${card.names}: ${label} ${field.value}.`)
})
addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target)
  if (target.id === "save") save()
  if (!target.matches(".rest")) return
  const open = here.cards.filter((card) => card.isOpen)
  enter(open.map((card) => [card, /** @type {HTMLInputElement} */ (card.why), "0"]))
  tell(`0 points for ${open.length} cards.`)
})
// Another tab has decided.
addEventListener("storage", (event) => {
  byKey.get(event.key ?? "")?.read()
  tell()
})
addEventListener("beforeunload", (event) => {
  if (newCards && !kept.isLasting) event.preventDefault()
})
