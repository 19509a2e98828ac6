// The page of the climb: what moves at its top, pictures that come as they come near, and the
// workbench that takes a step's place.
;(() => {
  const CALM = matchMedia("(prefers-reduced-motion: reduce)")
  const NARROW = matchMedia("(max-width: 760px)")
  const whole = new Intl.NumberFormat("en-US")
  /** @type {(selector: string, inside?: ParentNode) => any} */
  const $ = (selector, inside = document) => inside.querySelector(selector)
  /** @type {(selector: string) => any[]} */
  const all = (selector) => [...document.querySelectorAll(selector)]

  // -- what the page asks: candidates, and what the chip answered to each

  const FIRST = "01a" // the step whose line the first riddle asks for
  // What answers a question is folded until the reader has answered it; on a phone, code is, too.
  for (const fold of all(NARROW.matches ? ".why, .changes" : ".why")) fold.open = false
  /** Show what answers a step's question: what is folded in it. */
  function tell(step) {
    for (const fold of step.querySelectorAll(".why")) fold.open = true
    if (step.id !== FIRST) return
    const {href} = $(".try", step.nextElementSibling) // what is solved isn't asked again
    Object.assign($("#first"), {href, textContent: "Write the next lines (26 MB)"})
  }
  /** Do something with what the browser keeps between visits, if it does. */
  function kept(act) {
    try {
      return act(localStorage)
    } catch {
      return null
    }
  }
  for (const riddle of all(".riddle")) {
    const parts = ["fieldset", ".film-speed", ".film-says", ".typed"]
    const [choices, speed, said, typed] = parts.map((part) => $(part, riddle))
    const pictures = [...riddle.querySelectorAll(".shown")]
    const frames = JSON.parse(riddle.dataset.frames)
    const place = `tries ${riddle.id}`
    let chosen = "" // the numbers of candidates, to the right one
    const answers = all(`[data-until=${riddle.id}]`) // what tells its answer
    const withhold = (is) =>
      answers.map((each) => Object.assign(each, {open: !is}).classList.toggle("asking", is))
    withhold(true)
    /** Show the answer to a candidate, or what is there before the first touch. */
    function answer(number) {
      const [says, gflops, kind, unit] = frames[number]
      for (const [at, picture] of pictures.entries()) picture.hidden = at !== number
      said.textContent = says
      said.className = `film-says ${kind}`
      speed.className = `film-speed is-${kind}`
      $("span", speed).textContent = unit
      $("b", speed).textContent = whole.format(gflops)
      return kind
    }
    answer(0)
    const candidates = [...choices.children]
    function choose(button) {
      const number = candidates.indexOf(button)
      const kind = answer(number + 1)
      for (const one of candidates) one.setAttribute("aria-pressed", String(one === button))
      button.dataset.kind = kind
      typed?.replaceChildren(...$("code", button).cloneNode(true).childNodes)
      if (riddle.matches(".solved")) return
      chosen += number
      kept((store) => store.setItem(place, chosen))
      if (kind !== "right") return
      riddle.classList.add("solved")
      withhold(false)
      for (const {parentNode: link, textContent} of answers)
        if (link.matches("svg a")) link.ariaLabel += `, ${textContent} Gflop/s`
      if (typed) tell(document.getElementById(FIRST))
      $("#solved").textContent = `${all(".solved").length} of ${all(".riddle").length} solved`
    }
    choices.addEventListener("click", ({target}) => {
      if (target.closest("button")) choose(target.closest("button"))
    })
    $(".send", riddle).addEventListener("click", ({target}) => {
      const question = $("figcaption strong", riddle).textContent
      const tries = chosen.replace(/./g, (n) => ({right: "✓", wrong: "✗"})[frames[+n + 1][2]])
      send(target, `#${riddle.id}`, `A GPU's matrix product: ${question} ${tries}`)
    })
    if (typed) typed.textContent = "?"
    for (const number of kept((store) => store.getItem(place)) ?? "") choose(candidates[number])
  }
  /** Share a riddle's link with its question and the reader's tries, or copy both; or show them, to be
   * copied by hand. */
  async function send(button, place, text) {
    const url = location.href.split(/[?#]/)[0] + place
    if (navigator.share) return navigator.share({text, url}).catch(() => {})
    const words = button.textContent
    const value = `${text} ${url}`
    const field = document.createElement("input")
    try {
      await navigator.clipboard.writeText(value)
    } catch {
      button.replaceWith(Object.assign(field, {value, readOnly: true, ariaLabel: "Copy this link"}))
      return field.select()
    }
    button.innerHTML = "<span>The link is copied</span>"
    onHand(() => button.replaceChildren(words))
  }
  /** Do something once the reader does something. */
  function onHand(act) {
    for (const hand of ["wheel", "touchstart", "keydown", "pointerdown"])
      addEventListener(hand, act, {once: true, passive: true})
  }

  // -- pictures

  /** @type {Promise<any> | undefined} */
  let loading // what plays them
  const later = (act) => addEventListener("online", act, {once: true}) // with a network again
  const load = (src) =>
    new Promise((go, fail) => {
      const script = document.createElement("script")
      Object.assign(script, {src, onload: go, onerror: fail})
      document.head.append(script)
    })
  const stages = new Map(all("[data-picture]").map((stage) => [stage.dataset.picture, stage]))
  globalThis.climb = {
    put(name, html) {
      const stage = stages.get(name)
      const still = $("picture", stage)
      const holder = document.createElement("template")
      holder.innerHTML = html
      const picture = holder.content.firstElementChild
      $(".cypresskit-still", picture).replaceChildren(still)
      stage.append(picture)
      playWhenSeen(picture)
    },
  }
  const near = new IntersectionObserver(
    (found) => {
      for (const {isIntersecting, target} of found)
        if (isIntersecting) {
          near.unobserve(target)
          const file = `climb/${/** @type {any} */ (target).dataset.picture}.js`
          loading ??= load("_static/players.js")
          Promise.all([loading, load(file)]).catch(() => {
            loading = undefined
            later(() => near.observe(target))
          })
        }
    },
    {rootMargin: "900px 0px"},
  )
  for (const stage of stages.values()) near.observe(stage)
  for (const image of all(".stage img"))
    image.addEventListener("error", () => later(() => image.setAttribute("src", image.src)))

  const SEEN = {threshold: [0, 0.2, 0.4, 0.61, 0.8]}
  const isSeen = ({intersectionRatio, intersectionRect}) =>
    intersectionRatio > 0.6 || intersectionRect.height > 0.55 * innerHeight

  function playWhenSeen(picture) {
    const seen = new IntersectionObserver(([one]) => {
      if (!isSeen(one)) return
      if (!$("[data-ready]", picture)) {
        setTimeout(() => {
          seen.unobserve(picture)
          seen.observe(picture)
        }, 200)
        return
      }
      seen.disconnect()
      if (!CALM.matches) picture.dispatchEvent(new Event("cypresskit-play"))
    }, SEEN)
    seen.observe(picture)
  }

  // -- where one is

  const steps = all(".step")
  const strip = $(".strip")
  const places = new Map(
    all(".rail svg a").map((link) => [link.getAttribute("href").slice(1), link]),
  )
  let current
  function arrive(step) {
    if (step === current) return
    current = step
    for (const [id, link] of places) link.ariaCurrent = id === step?.id ? "true" : null
    strip.toggleAttribute("data-on", Boolean(step))
    $("#here").textContent = step ? `${steps.indexOf(step) + 1}. ${step.dataset.title}` : ""
    if (!step) return
    $("span", strip).textContent = `Step ${steps.indexOf(step) + 1} of ${steps.length}`
    strip.style.setProperty("--at", String((steps.indexOf(step) + 1) / steps.length))
  }
  const look = () => {
    const line = innerHeight * 0.45
    const isPast = (element) => element.getBoundingClientRect().top < line
    arrive(isPast($("#measured")) ? undefined : steps.findLast(isPast))
  }
  addEventListener("scroll", look, {passive: true})
  addEventListener("resize", look)
  look()

  const menu = $(".menu")
  /** @type {(event: any) => void} */
  const closeMenu = ({target, key}) => {
    if (key ? key !== "Escape" : menu.contains(target)) return
    if (menu.contains(document.activeElement) && key) $("summary", menu).focus()
    menu.open = false
  }
  for (const sign of ["click", "focusin", "keydown"]) addEventListener(sign, closeMenu)

  // -- Try it: the workbench in a step's place. Its frame moves from step to step, and its Python goes on.

  /** @type {HTMLElement} */
  let bench
  let open
  const frameOf = () => /** @type {HTMLIFrameElement} */ ($("iframe", bench))
  /** Have the workbench open a step's kernel, and name what is next. */
  function ask({step, button, types}) {
    const number = steps.indexOf(step) + 1
    const next = `Next: ${steps[number] ? `step ${number + 1}` : "the contest"}`
    const message = {type: "open", step: stepOf(button), next, types}
    frameOf().contentWindow.postMessage(message, location.origin)
    open.types = false
  }
  const stepOf = (button) => new URL(button.href).searchParams.get("step")
  function close() {
    if (!open) return
    const {button} = open
    if (bench.contains(document.activeElement)) button.focus({preventScroll: true})
    bench.hidden = true
    button.textContent = button.dataset.words
    button.setAttribute("aria-expanded", "false")
    open = undefined
  }
  function show(step, button, types) {
    close()
    $(".note", step)?.remove()
    open = {step, button, types}
    if (bench?.isConnected && step.moveBefore) {
      step.moveBefore(bench, null)
      ask(open)
    } else {
      bench?.remove()
      bench = document.createElement("div")
      Object.assign(bench, {className: "bench", tabIndex: -1})
      const frame = document.createElement("iframe")
      frame.addEventListener("load", checkFrame)
      frame.src = `bench/index.html?embed&step=${stepOf(button)}`
      bench.append(frame)
      step.append(bench)
      navigator.serviceWorker?.register("offline.js").catch(() => {})
    }
    frameOf().title = `The workbench: ${step.dataset.title}`
    bench.dataset.task = button.dataset.words
    bench.hidden = false
    frameOf().style.height = "" // as high as most are
    button.textContent = "Close the workbench"
    button.setAttribute("aria-expanded", "true")
    bench.focus({preventScroll: true})
    goTo(step)
  }
  /** The page's address with a step's workbench, or with none. */
  function addressOf(step = undefined) {
    const address = new URL(location.href.split("#")[0]) // whose place was left
    if (step) address.searchParams.set("try", step.id)
    else address.searchParams.delete("try")
    return address
  }
  /** Open the workbench in a step, to type, or in none. Back and Forward return to what was open before; Reload
   * opens it again. */
  function turnTo(step) {
    history.pushState(null, "", addressOf(step))
    follow(true)
  }
  /** Open what the address names, and go there to type, or not. */
  function follow(types = false) {
    const step = steps.find((one) => one.id === new URLSearchParams(location.search).get("try"))
    if (step === open?.step || (step && isRefused(step))) return
    if (step) show(step, $(".try", step), types)
    else close()
  }
  /** Whether the workbench doesn't open on this page. On a phone it has its own; from a folder it can't, and
   * the step says why. */
  function isRefused(step) {
    if (location.protocol !== "file:") return NARROW.matches
    note(step, $("main").dataset.file)
    return true
  }
  addEventListener("popstate", () => follow())
  /** If the workbench's page didn't arrive, say so. It comes anew when it is asked for. */
  function checkFrame() {
    if (frameOf().contentDocument?.body.classList.contains("embed")) return
    const step = open?.step
    close()
    history.replaceState(null, "", addressOf())
    bench.remove()
    const why = "The workbench didn't arrive: the network or the server is gone. Try again."
    if (step) note(step, why)
  }
  addEventListener("message", ({data, source, origin}) => {
    if (!bench || source !== frameOf().contentWindow || origin !== location.origin) return
    const {offsetHeight, style} = frameOf() // it grows, so that nothing below it jumps up
    if (data.type === "height") style.height = `${Math.max(offsetHeight, data.height + 4)}px`
    if (data.type === "ready" && open) ask(open)
    if (data.type === "opened") bench.dataset.opened = data.step
    if (data.type === "hand") dispatchEvent(new Event("wheel"))
    if (!open) return
    if (data.type === "clocks" && data.isRight && data.step === stepOf(open.button)) tell(open.step)
    if (data.type !== "next") return
    const next = steps[steps.indexOf(open.step) + 1]
    if (next) return turnTo(next)
    goTo($("#contest"))
    $("#contest .try").focus({preventScroll: true})
  })
  for (const step of steps) {
    const button = $(".try", step)
    button.dataset.words = button.textContent
    button.setAttribute("role", "button")
    button.setAttribute("aria-expanded", "false")
    button.addEventListener("keydown", (event) => {
      if (event.key !== " ") return
      event.preventDefault()
      button.click()
    })
    button.addEventListener("click", (event) => {
      if (!isRefused(step)) turnTo(open?.step === step ? undefined : step)
      else if (location.protocol !== "file:") return // its link leads there
      event.preventDefault()
    })
  }
  $("#first").addEventListener("click", (event) => {
    const step = steps.find((one) => $(".try", one).href === event.currentTarget.href)
    const isHere = !isRefused(step)
    if (!isHere && location.protocol !== "file:") return // its link leads there
    event.preventDefault()
    if (isHere && open?.step === step) ask({...open, types: true})
    else if (isHere) turnTo(step)
    goTo(step)
  })
  /** Say in a step why the workbench doesn't open. */
  function note(step, words) {
    $(".note", step)?.remove()
    const said = document.createElement("p")
    said.className = "note"
    said.setAttribute("role", "status")
    said.innerHTML = words
    $("header", step).after(said)
  }
  /** Go to a place, or its step, and stay while pictures come, until the reader acts or goes back. What is next
   * to press or read gets the focus. */
  function goTo(place, address = location.href, next = undefined) {
    const step = place.closest(".step") ?? place
    const watch = new ResizeObserver(() => {
      if (!location.href.endsWith(address)) return watch.disconnect()
      next?.focus({preventScroll: true})
      step.scrollIntoView({behavior: "instant"})
      const cut = place.getBoundingClientRect().bottom > innerHeight
      if (cut) place.scrollIntoView({behavior: "instant"}) // a riddle: with all of its answers
    })
    watch.observe(document.body)
    onHand(() => watch.disconnect())
    setTimeout(() => watch.disconnect(), 8000)
  }
  const search = new URLSearchParams(location.search)
  const named = search.get("try") ?? search.get("step") ?? location.hash.slice(1)
  const opens = (step) => stepOf($(".try", step)) === named
  const wanted = document.getElementById(named) ?? steps.find(opens)
  follow()
  if (wanted) goTo(wanted)
  // Where a link leads, there the focus goes: to a riddle's first answer, or to a heading. Back gives it to the
  // link that was left.
  const links = all("a")
  const leave = ({target}) => history.replaceState(links.indexOf(target.closest("a")), "")
  addEventListener("click", leave, true)
  addEventListener("popstate", ({state}) => links[state]?.focus({preventScroll: true}))
  for (const link of all("main a[href^='#'], .strip a, .rail a, .skip")) {
    const to = link.getAttribute("href") // a drawing's link has no hash of its own
    const place = document.getElementById(to.slice(1))
    link.addEventListener("click", () => goTo(place, to, $("fieldset button, h2, h3", place)))
  }
})()
