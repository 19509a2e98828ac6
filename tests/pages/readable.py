"""Whether everybody can read a page."""

import random
from importlib.util import find_spec

from browsing import JS, script_errors
from needs import demand
from sampling import DAY

#: A rule that the checker has, and doesn't follow by itself: a fold is called what it shows.
MISNAMED = "label-content-name-mismatch"


def axe_finds(page, *rules):
    """What a checker of accessibility, or some rules of it, finds serious on the page, and goes on
    to find: on a busy computer the colors may still be those of the theme before.
    """
    demand(find_spec("axe_playwright_python"), "axe")
    from axe_playwright_python.sync_playwright import Axe

    axe, serious = Axe(), []
    options = {"runOnly": rules} if rules else {"rules": {MISNAMED: {"enabled": True}}}
    for _ in range(3):
        found = axe.run(page, options=options).response["violations"]
        serious = [(v["id"], v["help"]) for v in found if v["impact"] in ("serious", "critical")]
        if not serious:
            break
        page.wait_for_timeout(300)
    return serious


WIDE, PHONE, SMALL_PHONE = (1366, 768), (390, 844), (320, 640)


def unreadable(page, show=lambda: None, narrow=SMALL_PHONE):
    """What keeps somebody from reading a page that ``show`` shows on a wide and on a narrow screen:
    it scrolls sideways, a script fails, letters are small, or a checker of accessibility finds it.
    Which of them is dark, the day decides. No picture plays by itself.
    """
    found = script_errors(page)
    looks = random.Random(DAY).sample(["light", "dark"], 2)
    for (width, height), look in zip((WIDE, narrow), looks):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=look, reduced_motion="reduce")
        show()
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} of {width} pixels"] * (wide > width) + axe_finds(page)
        # A chart is as wide as a usual phone, and shrinks on a smaller one.
        page.set_viewport_size({"width": max(width, PHONE[0]), "height": height})
        found += page.evaluate(JS.small)
    return found


def play_all(page):
    """Go to each picture of the first page, and wait until it plays."""
    for stage in page.locator("figure .stage:visible").all():
        stage.scroll_into_view_if_needed()
        stage.locator("cypresskit-picture > [data-ready]").wait_for(state="attached")


#: The letters of an element and of all inside it have no color, or have it again.
LETTERS = """(it, color) => [it, ...it.querySelectorAll("*")].forEach((one) =>
  one.style.setProperty("-webkit-text-fill-color", color))"""


def is_painted(said):
    """Whether an element's words are seen: without their letters, the same place looks otherwise.
    The text of a node is there even if nothing shows it.
    """
    if not said.is_visible() or not said.inner_text().strip():
        return False
    before = said.screenshot(animations="disabled")
    said.evaluate(LETTERS, "transparent")
    after = said.screenshot(animations="disabled")
    said.evaluate(LETTERS, "")
    return before != after
