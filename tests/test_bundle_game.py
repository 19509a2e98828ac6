"""The bundle game: its rules against the compiler's legality check, and how it is played."""

import random
from dataclasses import replace

from said import Rule, Said, assert_true

import cypresskit as ck
from cypresskit.compiler import Bundle, Code, Read, compile
from cypresskit.compiler.isa import SLOT_SETS
from cypresskit.compiler.ports import Ports, find_slot_reads
from cypresskit.draw.scripts import read_packaged
from cypresskit.teach.l03_bundles.bundle_game import TABLES, bundle_game, cards
from tools.legality import CONSTANTS, check

RULES = read_packaged("teach/l03_bundles/bundle_rules.js").replace("export ", "")
GAME = ".cypresskit-figure"
MOVES = 1500  # that are judged


def loops() -> list[tuple[Code, list]]:
    """The catalog's loops: code, and each bundle's cards with their slots."""
    made = []
    for kernel in ck.kernels.values():
        code = compile(kernel.program)
        bundles = [b for clause in code.main_loop for b in clause.bundles]
        found = iter(cards(bundles))
        made.append(
            (
                code,
                [
                    [(card := next(found), [o.slot for o in card.parts]) for _ in b.parts]
                    for b in bundles
                ],
            )
        )
    return made


def moves(bundles: list):
    """(the bundle before, what stands in this one, the card to add, into which slots): each card of
    a loop in turn, and the first of the bundle after it, into every slot that there is.
    """
    for n, bundle in enumerate(bundles):
        for k in range(len(bundle) + 1):
            for card, _ in (bundle[k:] or (bundles[n + 1] if n + 1 < len(bundles) else []))[:1]:
                for slots in SLOT_SETS["any"] + SLOT_SETS["pair"] + SLOT_SETS["quad"]:
                    if len(slots) == len(card.parts):
                        yield (bundles[n - 1] if n else []), bundle[:k], card, slots


def legal(code: Code, before: list, bundle: list, swizzles: list | None) -> bool:
    """What the compiler's check says of a bundle; without ``swizzles``, with those that the
    compiler would find.
    """
    held = {
        part.dest: slot
        for card, slots in before
        for part, slot in zip(card.parts, slots)
        if part.dest
    }
    placed = [
        (n, part, slot)
        for n, (card, slots) in enumerate(bundle)
        for part, slot in zip(card.parts, slots)
    ]
    words = {
        (r.index, r.channel) for _, part, _ in placed for r in part.reads if r.kind == "gpr"
    } | set(held)
    words |= {part.dest for _, part, _ in placed if part.dest}
    spare = iter({*range(123)} - {register for register, _ in words})
    low = {
        register: register if register < 123 else next(spare)
        for register in sorted({r for r, _ in words})
    }
    literals = list(
        dict.fromkeys(r.bits for _, part, _ in placed for r in part.reads if r.kind == "literal")
    )

    def read(r: Read) -> Read:
        if r.kind == "literal":
            return replace(r, channel=literals.index(r.bits))
        if r.kind != "gpr":
            return r
        slot = held.get((r.index, r.channel))
        return (
            replace(r, index=low[r.index])
            if slot is None
            else Read("ps")
            if slot == 4
            else Read("pv", 0, slot)
        )

    made = [
        replace(
            part,
            slot=slot,
            number=n,
            reads=tuple(map(read, part.reads)),
            dest=part.dest and (low[part.dest[0]], part.dest[1]),
        )
        for n, part, slot in placed
    ]
    if swizzles is None:
        units = [
            find_slot_reads(
                [(r.channel, r.index) if r.kind == "gpr" else None for r in o.reads],
                o.slot == 4,
                sum(r.kind in CONSTANTS for r in o.reads),
                tuple(k for k, r in enumerate(o.reads) if r.kind in ("pv", "ps")),
            )
            for o in made
        ]
        ports = Ports()
        if not ports.fit(units):
            return False
        swizzles = ports.swizzles
    made = sorted(
        (replace(o, swizzle=name) for o, name in zip(made, swizzles)), key=lambda o: o.slot
    )
    first = Bundle(
        tuple(
            replace(part, slot=slot)
            for card, slots in before
            for part, slot in zip(card.parts, slots)
        )
    )
    clause = next(c for c in code.controls if c.bundles)
    both = (first, Bundle(tuple(made), tuple(literals)))
    found = check(
        replace(
            code, gprs=124, temporaries=0, controls=(replace(clause, name="ALU", bundles=both),)
        )
    )
    theirs = ("LDS read of", "write the same word")  # of several bundles, and of who waits for whom
    return not any(
        "bundle 1:" in fault and not any(one in fault for one in theirs) for fault in found
    )


def test_moves_of_the_game_match_the_legality_check(page):
    """A random sample of all that there are."""
    possible: dict[tuple, tuple] = {}
    for code, bundles in loops():
        for before, bundle, card, slots in moves(bundles):
            whole = [*bundle, (card, slots)]
            possible.setdefault(_alike(before, whole), (code, before, whole))
    asked = random.Random(5).sample(list(possible.values()), MOVES)
    every = {card for _, *parts in asked for part in parts for card, _ in part}
    known = {card: n for n, card in enumerate(every)}
    given = [
        [[[known[card], slots] for card, slots in part] for part in parts] for _, *parts in asked
    ]
    said = page.evaluate(
        """([rules, tables, cards, asked]) => {
        const {judge, heldBy} = new Function(rules + "; return {judge, heldBy}")()
        const those = (part) => part.map(([n, slots]) => [cards[n], slots])
        return asked.map(([before, bundle]) => judge(those(bundle), heldBy(those(before)),
          tables)) }""",
        [RULES, TABLES, [card.as_dict(0) for card in known], given],
    )
    wrong = [
        (verdict, whole)
        for verdict, (code, before, whole) in zip(said, asked, strict=True)
        if legal(code, before, whole, verdict.get("chosen")) != ("chosen" in verdict)
    ]
    assert not wrong, f"{len(wrong)} of {len(asked)} moves, such as {wrong[0]}"
    assert (
        sum("chosen" in verdict for verdict in said)
        > MOVES / 10
        < sum("why" in verdict for verdict in said)
    )
    reasons = " ".join({verdict["why"] for verdict in said if "why" in verdict})
    for why in ("writes only", "is taken", "are 4"):
        assert why in reasons


def _alike(before: list, bundle: list) -> tuple:
    """The same for moves that differ in names of registers only."""
    names: dict[int, int] = {}

    def named(word):
        return word and (names.setdefault(word[0], len(names)), word[1])

    return tuple(
        (
            part.name,
            part.channel,
            slot,
            named(part.dest) if n == 0 else None,
            (
                tuple(
                    (
                        r.kind,
                        (
                            named((r.index, r.channel))
                            if r.kind == "gpr"
                            else (r.element, r.channel, r.bits)
                        ),
                    )
                    for r in part.reads
                )
                if n
                else ()
            ),
        )
        for n, some in enumerate((before, bundle))
        for card, slots in some
        for part, slot in zip(card.parts, slots)
    )


def test_levels_count_what_the_compiler_needs():
    """Lesson 03's numbers: 31 bundles, and 27 that no way goes below."""
    first, second, turn = bundle_game().data["levels"]
    counts = turn["compiled"], turn["least"], len(turn["cards"])
    assert counts == (31, 27, 131)
    assert (first["name"][-12:], len(second["cards"])) == ("9 operations", 16)
    assert first["least"] == 4, "a chain of four, though nine fit into two bundles"


def test_it_is_played_by_keys_and_says_why_not(page, tmp_path):
    page.goto(bundle_game().save(tmp_path / "game.html").as_uri())
    page.wait_for_selector(f"{GAME}[data-ready]")
    page.locator(GAME).focus()

    def said(*keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        return page.locator(f"{GAME} [role=status]").inner_text()

    assert "is in x" in said("Enter")
    assert "slot z writes only z; this one writes y" in said("ArrowRight", "Enter")
    assert "needs a result of ADD of line 11" in said("ArrowUp", "Enter")
    assert "at least" in said("b", "b"), "an empty bundle isn't closed"
    assert "Undone" in said("u", "u") and "nothing to undo" in said("u")
    for _ in range(9 + 3):
        said("b" if "close" in said("h") else "Enter")
    assert (
        said("b", "h").startswith("Done: 4 bundles, 12 hints. In AMD's order: 4.")
        and "No packing has fewer" in said()
    )
    assert "Undone" in said("u") and page.locator(GAME).get_attribute("data-left") == "1", (
        "closing was no move"
    )


def test_a_card_is_dragged_into_a_slot_in_jupyterlabs_width(page, tmp_path):
    page.set_viewport_size({"width": 1066, "height": 768})
    page.goto(bundle_game().save(tmp_path / "game.html").as_uri())
    page.wait_for_selector(f"{GAME}[data-ready]")
    page.drag_and_drop(f"{GAME} .row code >> nth=0", f"{GAME} .slot >> nth=0")
    page.drag_and_drop(f"{GAME} .slot >> nth=0", f"{GAME} .list")
    page.get_by_text("Removed from the bundle.").wait_for()  # out of its slot
    assert page.locator(GAME).bounding_box()["height"] < 620


def rules(shown: dict, packed: int) -> dict[str, Rule]:
    """What the numbers have to be: of the code of a level."""
    level = shown["level"]
    bundles = [b for c in shown["code"].main_loop for b in c.bundles]
    operations = sum(len(b.parts) for b in bundles)

    def line(say: Said, numbers):
        return bool(numbers) and say.text == f"{int(numbers[0])} {level['lines'][int(numbers[0])]}"

    return {
        r"@: # operations": lambda *_: [operations],
        r"You: #(, # hints)?": lambda _, numbers: [packed] * len(numbers),  # each by a hint
        r"[Ii]n AMD's order: #": lambda *_: [len(bundles)],
        r"lower bound: #": lambda *_: [-(-operations // 5)],
        r"Chosen: line #, .*": lambda _, numbers: [n for n in numbers if n in level["lines"]],
        r"# .*": line,
        r"#": lambda say, _: [say.index + 1],
    }


def test_every_number_of_the_loop_is_the_codes(page, tmp_path):
    """Of the kernel's loop, before the first bundle and after two."""
    program = ck.kernels["sgemm_tn"].program
    shown = {
        "level": bundle_game().data["levels"][2],
        "code": compile(program),
    }
    page.goto(bundle_game().save(tmp_path / "game.html").as_uri())
    page.wait_for_selector(f"{GAME}[data-ready]")
    choice = page.get_by_role("button", name="sgemm_tn: ")
    choice.click()
    for packed in (0, 2):
        for _ in range(packed):
            for key in ("h", "Enter", "b"):
                page.keyboard.press(key)
        texts = [Said(choice.inner_text(), 0, "choice")]
        for where in (
            ".row code",
            ".done .count",
            ".others span",
            ".pile span",
            ".board > div > p",
        ):
            words = page.locator(f"{GAME} {where}").all_inner_texts()
            texts += [Said(text, 0, where, n) for n, text in enumerate(words)]
        assert len(texts) > 8
        assert_true(texts, rules(shown, packed))
