// Which text is known where. The reader's draft goes from the editor to Python, and into the file;
// texts of other editors come the other way. Of two the newer one counts. A draft that may not be in
// the file is in the browser's storage, too, which outlives a reload.

const UNSENT = "cypresskit-unsent"

export class Texts {
  /**
   * @param {{file: string, text: string, edit: string}} state what Python has
   * @param {() => Pick<Storage, "getItem" | "setItem">} storage */
  constructor({file, text, edit}, storage = () => sessionStorage) {
    this.file = file
    this.storage = storage
    this.view = Math.random().toString(36).slice(2, 8) // begins the names of this page's texts
    this.count = 0 // of them
    this.draft = text // in the editor
    this.sent = text // the last text that Python was sent, or has sent
    this.edit = edit // its name
    this.saved = text // the last text that the file had, as far as is known
    /** @type {"typed" | "sent" | "heard" | "saved"} how far the draft has come; what is heard, but
     * not saved, Python couldn't write */
    this.stage = "saved"
    this.answers = {} // to the draft, by part
    this.left = [] // [view, {text}] of earlier pages that Python may not have
  }

  /** Python has begun, perhaps anew. Returns the messages that tell it what it may not have. What an
   * earlier page couldn't send is the draft if it was made from the file's text; if not, it is for
   * the history. */
  begin(state) {
    const isSaved = this.stage === "saved"
    if (isSaved) this.take(state)
    const stored = Object.entries(this.stored()[this.file] ?? {})
    this.left = stored.filter(([view]) => view !== this.view)
    const isMadeOf = ([, {bases}]) => bases.includes(this.saved)
    const newest = isSaved ? this.left.findLast(isMadeOf) : undefined
    const others = this.left.filter((one) => one !== newest)
    const messages = others.map(([view, {text}]) => ({type: "unsent", edit: view, text}))
    if (newest) {
      this.type(newest[1].text)
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
    Object.assign(this, {edit, sent: this.draft, stage: "sent"})
    return {type: "text", edit, text: this.sent, base}
  }

  /** Python has a text, and has written it unless there is a problem. Returns whether it is the last
   * one that this page has sent. */
  heard({edit, problem = ""}) {
    const left = this.left.find(([view]) => view === edit)
    if (left) this.store(left)
    if (edit !== this.edit) return false
    if (!problem) this.saved = this.sent
    if (this.stage !== "typed") this.stage = problem ? "heard" : "saved"
    this.store()
    return true
  }

  /** Take a text of another editor. Returns false if it is this page's, or if the draft is newer:
   * Python hasn't heard of it, and will keep the other text in the history. */
  take({edit, text}) {
    if (edit.startsWith(`${this.view}-`) || ["typed", "sent"].includes(this.stage)) return false
    Object.assign(this, {draft: text, sent: text, edit, saved: text, stage: "saved", answers: {}})
    this.store()
    return true
  }

  /** Whether a text's name is the draft's. */
  names(edit) {
    return edit === this.edit && this.stage !== "typed"
  }

  /** Store the draft until it is saved, and no longer a text that an earlier page has left. */
  store([view, {text}] = ["", {text: ""}]) {
    const all = this.stored()
    const texts = {...all[this.file]}
    if (texts[view]?.text === text) texts[view] = undefined
    const own = {text: this.draft, bases: [this.saved, this.sent]}
    texts[this.view] = this.stage === "saved" ? undefined : own
    try {
      this.storage().setItem(UNSENT, JSON.stringify({...all, [this.file]: texts}))
    } catch {
      // A page that may store nothing.
    }
  }

  /** Return what is stored: {text, bases} by file and view. */
  stored() {
    try {
      return JSON.parse(this.storage().getItem(UNSENT)) ?? {}
    } catch {
      return {} // nothing is stored there, or nothing of ours
    }
  }
}
