// For tests and `make bench`: records the messages of the workbench's worker. `parts` holds the parts
// of its answers, `reports` what a test's Python program has reported.
/** @type {any} */
const page = window
page.parts = []
page.reports = []
page.Worker = class extends Worker {
  constructor(script, options) {
    super(script, options)
    this.addEventListener("message", ({data: {type, content}}) => {
      if (type === "say" && content.type === "answer") page.parts.push(content.part)
      if (type === "report") page.reports.push(content)
    })
  }
}
