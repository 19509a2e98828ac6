// A journey through levels, one of which is seen at a time. Its first line, which Python writes, sets host, ways, hints
// and start.
const levels = [...host.querySelectorAll("section")], crumbs = [...host.querySelectorAll("nav button")]
const say = (words) => { host.querySelector("nav span").textContent = words }
let at = 0
const to = (level, go) => {
  at = level
  levels.forEach((one, n) => { one.hidden = n !== at })
  crumbs.forEach((one, n) => one.toggleAttribute("aria-current", n === at))
  say(hints[at])
  const place = levels[at].querySelector(".cypresskit-player")
  if (go) place.dataset.go = JSON.stringify({frame: go[0], key: go[1], focus: level > 0})
  if (go) place.dispatchEvent(new Event("cypresskit-go"))
  else place.querySelector("[data-ready]")?.focus({preventScroll: true})
}
to(0, start)
crumbs.forEach((one, n) => one.addEventListener("click", () => to(n)))
host.addEventListener("cypresskit-enter", (event) => {
  const way = ways[at][event.detail.key]
  if (way) event.preventDefault()
  if (way) to(at + 1, way)
  else if (at + 1 < levels.length) say(`Not recorded clause by clause. ${hints[at]}`)
})
;(host.closest(".cypresskit-page") ?? host).addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || at === 0) return
  event.stopPropagation()
  to(at - 1)
}, true)
