// What toys share: elements, and keys that act while the focus is theirs.
const make = (parent, tag, attributes = {}, text = "") => {
  const one = parent.appendChild(parent.namespaceURI?.endsWith("svg") || tag === "svg"
    ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag))
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value)
  one.textContent = text
  return one
}
const button = (parent, text, act, title = "") => {
  const one = make(parent, "button", {type: "button", title}, text)
  one.addEventListener("click", () => { act(); host.focus({preventScroll: true}) })
  return one
}
const listen = (keys) => host.addEventListener("keydown", (event) => {
  const act = keys[event.key] ?? keys[event.key.toLowerCase()], {target} = event
  if (!act || event.altKey || event.ctrlKey || event.metaKey || target.matches("input") || (target.matches("button") && event.key === "Enter")) return
  event.preventDefault()
  event.stopPropagation()
  act()
})
