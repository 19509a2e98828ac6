// The legal moves of the bundle game, by the rules of compiler/ports.py and tools/legality.py.
// A level brings their tables along. A test asks both about every move of every kernel's loop.
//
// A card is an operation: `parts`, one for each slot that it takes, with the channel and word that
// it writes and what it reads: {kind, bank, register} of a word, {kind, key} of a constant or
// literal. `held`: the words that PV and PS have, "register.bank", with the slot that made them.
export const SLOTS = "xyzwt"

// How the words that all units read find a port, one register for each of four banks in each of
// three cycles: the bank swizzle of each unit, and the register at each port. Null if there is no
// way.
export function findPorts(units, swizzles) {
  const ports = Array(12).fill(null),
    chosen = []
  const place = (n) => {
    if (n === units.length) return true
    const {slot, words, forwarded, constants} = units[n]
    for (const [name, cycles] of Object.entries(swizzles[slot === 4 ? "t" : "vector"])) {
      if (slot === 4 && cycles.some((cycle, i) => (words[i] || forwarded[i]) && cycle < constants))
        continue
      const taken = []
      const fits = words.every((word, i) => {
        const port = word && 4 * cycles[i] + word.bank
        if (!word || ports[port] === word.register) return true
        if (ports[port] !== null) return false
        taken.push(port)
        ports[port] = word.register
        return true
      })
      if (fits && place(n + 1)) {
        chosen[n] = name
        return true
      }
      for (const port of taken) ports[port] = null
    }
    return false
  }
  return place(0) ? {chosen, ports} : null
}

// What PV and PS hold after a bundle: words, with the slots that made them.
export const heldBy = (bundle) =>
  new Map(
    bundle.flatMap(([card, slots]) =>
      card.parts.flatMap(({dest}, n) => (dest ? [[`${dest[0]}.${dest[1]}`, slots[n]]] : [])),
    ),
  )

// What a part reads in a slot. The same word twice in front takes one port, but not in t.
export function unitOf({reads}, slot, held) {
  const forwarded = reads.map((r) => r.kind === "gpr" && held.has(`${r.register}.${r.bank}`))
  const words = reads.map((r, i) => (r.kind === "gpr" && !forwarded[i] ? r : null))
  const square =
    slot !== 4 &&
    words[0] &&
    words[1] &&
    words[0].register === words[1].register &&
    words[0].bank === words[1].bank
  if (square) words[1] = null
  return {
    slot,
    words,
    forwarded,
    constants: reads.filter((r) => ["constant", "literal", "inline"].includes(r.kind)).length,
  }
}

// The slots that a card goes into, in words.
function wordsFor(slots, sets) {
  if (slots === "quad") return "x, y, z and w together"
  return sets[slots].map((set) => set.map((s) => SLOTS[s]).join(" and ")).join(" or ")
}

// What is wrong with a bundle, a list of [card, its slots], in words, or how it finds its ports.
export function judge(bundle, held, {swizzles, sets}) {
  const wrong = (why) => ({why})
  const cards = bundle.map(([card]) => card),
    placed = bundle.flatMap(([card, slots]) =>
      card.parts.map((part, n) => ({part, slot: slots[n]})),
    )
  for (const [card, slots] of bundle) {
    // MOVs go into any slots.
    if (card.parts.some(({reads}) => reads.some((r) => r.kind === "queue"))) continue
    if (!sets[card.slots].some((set) => String(set) === String(slots)))
      return wrong(`${card.name} goes into ${wordsFor(card.slots, sets)}`)
  }
  for (const {part, slot} of placed)
    if (slot !== 4 && slot !== part.channel)
      return wrong(
        `slot ${SLOTS[slot]} writes only ${SLOTS[slot]}; this one writes ${SLOTS[part.channel]}`,
      )
  if (new Set(placed.map(({slot}) => slot)).size < placed.length) return wrong("this slot is taken")
  for (const [flag, what] of [
    ["test", "tests"],
    ["lds", "LDS instructions"],
  ])
    if (cards.filter((card) => card[flag]).length > 1) return wrong(`a bundle has no two ${what}`)
  if (cards.length > 1 && cards.some((card) => card.alone))
    return wrong("a barrier needs a bundle of its own")
  const reads = placed.flatMap(({part}) => part.reads),
    keys = (kind) => new Set(reads.filter((r) => r.kind === kind).map((r) => r.key)).size
  if (keys("constant") > 2) return wrong("a bundle reads two pairs of constants, no more")
  if (keys("literal") > 4) return wrong("a bundle has room for four literals")
  const units = placed.map(({part, slot}) => unitOf(part, slot, held))
  if (units.some(({slot, constants}) => slot === 4 && constants > 2))
    return wrong("t reads two constants, no more")
  for (let bank = 0; bank < 4; bank++) {
    const given = [
      ...new Set(
        units.flatMap(({words}) =>
          words.filter((w) => w?.bank === bank).map((w) => `R${w.register}`),
        ),
      ),
    ]
    if (given.length > 3)
      return wrong(
        `bank ${SLOTS[bank]} gives three registers a bundle: ${given.slice(0, -1).join(", ")} ` +
          `and ${given.at(-1)} are ${given.length}`,
      )
  }
  return (
    findPorts(units, swizzles) ??
    wrong(
      "every bank could give its registers, but not each slot in a cycle of its own: " +
        "the ports clash",
    )
  )
}
