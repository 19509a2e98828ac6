// For tests and `make bench`: what the worker of the site's workbench says, the parts of its
// answers in `heard`, and what a test had Python say in `told`.
window.heard = []
window.told = []
window.Worker = class extends Worker {
  constructor(...given) {
    super(...given)
    this.addEventListener("message", ({data: {type, content}}) => {
      if (type === "say" && content.type === "answer") window.heard.push(content.part)
      if (type === "tell") window.told.push(content)
    })
  }
}
