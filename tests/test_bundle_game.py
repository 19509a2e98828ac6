"""The bundle game: it allows what the compiler does, says why not, and is played by keys."""

import pytest

import cypresskit as ck
from cypresskit.compiler import compile
from cypresskit.draw.scripts import read_packaged
from cypresskit.teach.l03_bundles.bundle_game import TABLES, bundle_game, cards

RULES = read_packaged("teach/l03_bundles/bundle_rules.js").replace("export ", "")
GAME = ".cypresskit-figure"
JUDGE = """([rules, tables, cards, asked]) => {
    const {judge, heldBy} = new Function(rules + "; return {judge, heldBy}")()
    const those = (part) => part.map(([n, slots]) => [cards[n], slots])
    return asked.map(([before, bundle]) => judge(those(bundle), heldBy(those(before)), tables))
}"""


@pytest.fixture
def game(page, tmp_path):
    page.goto(bundle_game().save(tmp_path / "game.html").as_uri())
    page.wait_for_selector(f"{GAME}[data-ready]")
    return page


@pytest.mark.parametrize("name", ["sgemm_tn", "dgemm_nn", "ddgemm_tn_fma", "sgemm_64x64_lds"])
def test_the_compilers_moves_are_allowed_and_their_faults_are_not(page, name):
    """Each card of a loop is placed as the compiler placed it; then where a card is, and, of a
    vector's, in the slot of another component.
    """
    bundles = [b for clause in compile(ck.kernels[name].program).main_loop for b in clause.bundles]
    every = cards(bundles)
    numbers = iter(range(len(every)))
    packed = [[[next(numbers), [o.slot for o in card]] for card in b.parts] for b in bundles]
    right, wrong = [], []
    for n, bundle in enumerate(packed):
        for k, (card, slots) in enumerate(bundle):
            before = packed[n - 1] if n else []
            right.append([before, bundle[: k + 1]])
            if k and len(slots) == 1:
                wrong.append([before, [*bundle[:k], [card, bundle[0][1][:1]]]])
            if slots in ([0], [1], [2], [3]) and every[card].parts[0].dest:
                other = [(slots[0] + 1) % 4]
                wrong.append([before, [[card, other]]])
    told = page.evaluate(JUDGE, [RULES, TABLES, [c.as_dict(0) for c in every], right + wrong])
    assert all("chosen" in verdict for verdict in told[: len(right)])
    assert all("why" in verdict for verdict in told[len(right) :]) and wrong


def test_levels_count_what_the_compiler_needs():
    """Lesson 03's numbers: 31 bundles, and 27 that no way goes below."""
    first, second, turn = bundle_game().data["levels"]
    counts = turn["compiled"], turn["least"], len(turn["cards"])
    assert counts == (31, 27, 131)
    assert (first["name"][-12:], len(second["cards"])) == ("9 operations", 16)
    assert first["least"] == 4, "a chain of four, though nine fit into two bundles"


def test_it_is_played_by_keys_and_says_why_not(game):
    game.locator(GAME).focus()

    def said(*keys: str) -> str:
        for key in keys:
            game.keyboard.press(key)
        return game.locator(f"{GAME} [role=status]").inner_text()

    assert "is in x" in said("Enter")
    assert "slot z writes only z; this one writes y" in said("ArrowRight", "Enter")
    assert "needs a result of ADD of line 11" in said("ArrowUp", "Enter")
    assert "at least" in said("b", "b"), "an empty bundle isn't closed"
    assert "Undone" in said("u", "u") and "nothing to undo" in said("u")
    for _ in range(9 + 3):
        said("b" if "close" in said("h") else "Enter")
    assert said("b", "h").startswith("Done: 4 bundles, 12 hints. In AMD's order: 4.")
    assert "Undone" in said("u") and game.locator(GAME).get_attribute("data-left") == "1"


def test_a_card_is_dragged_into_a_slot_in_jupyterlabs_width(game):
    game.set_viewport_size({"width": 1066, "height": 768})
    game.drag_and_drop(f"{GAME} .row code >> nth=0", f"{GAME} .slot >> nth=0")
    game.drag_and_drop(f"{GAME} .slot >> nth=0", f"{GAME} .list")
    game.get_by_text("Removed from the bundle.").wait_for()  # out of its slot
    assert game.locator(GAME).bounding_box()["height"] < 620
