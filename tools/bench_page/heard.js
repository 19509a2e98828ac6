// For tests and `make bench`: what the worker of the site's workbench says, the parts of its
// answers in `heard`, and what a test had Python say in `told`.
/** @type {any} */
const page = window
page.heard = []
page.told = []
page.Worker = class extends Worker {
  constructor(script, options) {
    super(script, options)
    this.addEventListener("message", ({data: {type, content}}) => {
      if (type === "say" && content.type === "answer") page.heard.push(content.part)
      if (type === "tell") page.told.push(content)
    })
  }
}
