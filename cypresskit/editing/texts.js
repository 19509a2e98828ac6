// Which text is known where. The reader's draft goes from the editor to Python, and into the file;
// texts of other editors come the other way. Of two the newer one counts. A draft that may not be
// in the file is in the browser's storage, too, which outlives a reload.

const UNSENT = "cypresskit-unsent"

export class Texts {
  /**
   * @param {{file: string, text: string, edit: string}} state what Python has
   * @param {() => Pick<Storage, "getItem" | "setItem">} storage */
  constructor({file, text, edit}, storage = () => sessionStorage) {
    this.key = `${UNSENT} ${file}`
    this.storage = storage
    this.view = Math.random().toString(36).slice(2, 8) // begins the names of this page's texts
    this.count = 0 // of them
    this.draft = text // in the editor
    this.edit = edit // the name of the last text that Python was sent, or has sent
    /** @type {[string, number][]} names and marks: of the last text that the file had, as far as is
     * known, and of those sent since */
    this.bases = [[edit, markOf(text)]]
    /** @type {"typed" | "sent" | "heard" | "saved"} how far the draft has come; what is heard, but
     * not saved, Python couldn't write */
    this.stage = "saved"
    this.answers = {} // to the draft, by part
    this.left = [] // {view, text, bases} of other pages of this tab that Python may not have
  }

  /** Python has begun, perhaps anew. Returns the messages that tell it what it may not have. What
   * another page of this tab couldn't send is the draft if it was made from the file's text, and
   * typed last; if not, it is for the history. */
  begin(state) {
    const isSaved = this.stage === "saved"
    if (isSaved) this.take(state)
    this.left = this.stored().filter(({view}) => view !== this.view)
    const isMadeOf = ({bases}) => bases.includes(this.bases[0][1])
    const newest = isSaved ? this.left.findLast(isMadeOf) : undefined
    const others = this.left.filter((one) => one !== newest)
    const messages = others.map(({view, text}) => ({type: "unsent", edit: view, text}))
    if (newest) {
      this.type(newest.text)
      this.store(newest)
    }
    if (this.stage === "saved") return [...messages, {type: "shown", edit: this.edit}]
    return [...messages, this.send(newest ? "" : this.edit)] // "": not of what the page showed
  }

  /** The reader has changed the draft. */
  type(text) {
    Object.assign(this, {draft: text, stage: "typed", answers: {}})
    this.store()
  }

  /** Send the draft. Returns the message; `base` names the text that was changed. */
  send(base = this.edit) {
    const edit = `${this.view}-${++this.count}`
    Object.assign(this, {edit, stage: "sent"})
    this.bases.push([edit, markOf(this.draft)])
    return {type: "text", edit, text: this.draft, base}
  }

  /** Python has a text, and has written it unless there is a problem. Returns whether it is the last
   * one that this page has sent. */
  heard({edit, problem = ""}) {
    const isLast = edit === this.edit
    const at = this.bases.findIndex(([name]) => name === edit)
    if (!problem) this.bases.splice(0, at) // nothing, if it isn't there
    if (isLast && this.stage !== "typed") this.stage = problem ? "heard" : "saved"
    this.store(this.left.find(({view}) => view === edit))
    return isLast
  }

  /** Take a text of another editor. Returns false if it is this page's, or if the draft is newer:
   * Python hasn't heard of it, and will keep the other text in the history. */
  take({edit, text}) {
    if (edit.startsWith(`${this.view}-`) || ["typed", "sent"].includes(this.stage)) return false
    const bases = [[edit, markOf(text)]]
    Object.assign(this, {draft: text, edit, bases, stage: "saved", answers: {}})
    this.store()
    return true
  }

  /** Whether a text's name is the draft's. */
  names(edit) {
    return edit === this.edit && this.stage !== "typed"
  }

  /** Store the draft until it is saved, and no longer a text that another page has left. The draft
   * that was typed last is the last one. */
  store(left = {view: "", text: ""}) {
    const {view, draft: text, stage} = this
    const isOwn = (one) => one.view === view
    const isKept = (one) =>
      isOwn(one)
        ? one.text === text && stage !== "saved"
        : one.view !== left.view || one.text !== left.text
    const texts = this.stored().filter(isKept)
    if (stage !== "saved" && !texts.some(isOwn)) texts.push({view, text})
    for (const own of texts.filter(isOwn)) own.bases = this.bases.map(([, mark]) => mark)
    try {
      this.storage().setItem(this.key, JSON.stringify(texts))
    } catch {
      // A page that may store nothing.
    }
  }

  /** Return what is stored of the file: {view, text, bases} by age. */
  stored() {
    try {
      return JSON.parse(this.storage().getItem(this.key)).filter(
        (one) =>
          typeof one?.view === "string" && typeof one.text === "string" && Array.isArray(one.bases),
      )
    } catch {
      return [] // nothing is stored there, or something that isn't ours
    }
  }
}

/** Return a number that tells a text from others (FNV-1a): many are in flight while the kernel
 * works, and would fill the storage. */
function markOf(text) {
  let mark = 0x811c9dc5
  for (let n = 0; n < text.length; n++) mark = Math.imul(mark ^ text.charCodeAt(n), 0x01000193)
  return mark
}
