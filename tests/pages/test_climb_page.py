"""The site's first page: it opens, plays and answers in a browser, and everybody can read it."""

import json
import re
from itertools import chain, product

import pytest
from browsing import JS, script_errors
from bs4 import BeautifulSoup
from markupsafe import Markup
from playwright.sync_api import expect
from readable import is_painted, play_all
from sampling import drawn_by_day

from cypresskit.editing.steps import STEPS
from cypresskit.gains import Timed
from tools import bench_page, climb_page
from tools.bench_page.browser import served
from tools.climb_page import kernels, pictures, riddles

pytestmark = pytest.mark.usefixtures("timed_once")


@pytest.fixture
def page(page):
    """Nothing on it moves by itself."""
    page.emulate_media(reduced_motion="reduce")
    return page


def test_it_is_short(first_page):
    """Its prose: without code, numbers alone, and what pictures and riddles say."""
    body = BeautifulSoup((first_page / "index.html").read_bytes(), "html.parser").body
    for hidden in body.select("script, style, pre, figure"):
        hidden.extract()
    assert len(re.findall(r"\S*[A-Za-z]\S*", body.get_text(" "))) < 1250


def test_a_few_keys_lead_to_what_it_asks_first(soup):
    """Before it are links of the site; the rail comes last."""
    stops = [
        stop for stop in soup.select("a, summary, input, button") if not stop.find_parent("nav")
    ]
    assert [stop.parent.name for stop in stops].index("fieldset") <= 3
    assert soup.select("nav.rail a") == soup.select("a")[-len(kernels.KERNELS) :]


def test_a_link_to_it_has_a_preview(soup, first_page):
    tags = {tag.get("property"): tag["content"] for tag in soup.select("meta[property]")}
    assert tags["og:title"] == soup.h1.text and tags["og:url"] == "https://ada.github.io/kit/"
    assert tags["og:image"] == "https://ada.github.io/kit/climb/preview.png"
    assert (first_page / "climb/preview.png").stat().st_size > 10_000


def test_without_scripts_it_is_an_article_with_images(first_page, soup, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((first_page / "index.html").as_uri())
    page.locator("figure img").last.scroll_into_view_if_needed()
    images = page.locator("figure img")
    assert images.count() == len(pictures.PICTURES) + len(climb_page.page.CHARTS)
    assert all(image.is_visible() for image in images.all())
    assert "C is correct," in page.locator("#film").inner_text()
    assert not any(choices.is_visible() for choices in page.locator("fieldset").all())
    assert all(told.is_visible() for told in page.locator(".why > :is(.two, pre)").all())
    context.close()


def test_a_still_is_as_high_as_its_picture(first_page, chromium):
    """On a phone, too: no screen's height cuts it."""
    made = json.loads((first_page / "climb/pictures.json").read_text())
    for name, (_, _, images) in made.items():
        heights = {height for query, _, _, height in images if "max-width" in query}
        assert len(heights) == 1 and heights != {800}, name


#: Open a fold, as the answer to its riddle does.
OPEN = "fold => void (fold.open = true)"


def test_it_plays_from_a_folder_and_is_light(first_page, page):
    """With all its pictures, in fewer bytes than a photograph has."""
    loaded, problems = set(), script_errors(page)
    page.emulate_media(reduced_motion="no-preference")
    page.on("request", lambda request: loaded.add(request.url.partition("?")[0]))
    page.goto((first_page / "index.html").as_uri())
    page.locator(".why:has(.stage)").evaluate(OPEN)
    play_all(page)
    files = {
        first_page / url.removeprefix(f"{first_page.as_uri()}/")
        for url in loaded
        if url[:5] == "file:"
    }
    assert sum(file.stat().st_size for file in files if file.is_file()) < 1_500_000
    assert "- text" not in page.locator("#compiler svg:visible").aria_snapshot()
    assert not problems and page.locator("figure [data-advised]").count() == 0


FILE = bench_page.PROBLEMS["file"].replace("`", "")


def test_from_a_folder_try_it_says_why_it_cant(first_page, page):
    """At the step, where the reader is."""
    page.goto((first_page / "index.html").as_uri())
    for name in kernels.KERNELS:
        page.locator(f"[id='{name}'] .try").click()
        note = page.locator(f"[id='{name}'] .note")
        assert note.inner_text() == FILE and is_painted(note)
    assert page.locator(".bench").count() == 0 and page.url.endswith("/index.html")


#: Whether the focus is in a step's workbench.
TYPES = "id => document.activeElement === document.getElementById(id).querySelector('iframe')"


#: In the place of the workbench: every kernel is correct.
WORKBENCH = """
const say = (message) => parent.postMessage(message, location.origin)
addEventListener("message", ({data: {type, step, next, types}}) => {
  if (type !== "open") return
  const link = document.createElement("a")
  Object.assign(link, {href: "#", textContent: next, onclick: () => say({type: "next"})})
  document.body.replaceChildren(link)
  if (types) link.focus()
  say({type: "opened", step})
  say({type: "clocks", step, isRight: true})
})
say({type: "ready"})
"""


def show_workbench(route):
    """Answer a request for the workbench's page with ``WORKBENCH``."""
    body = f"<body class=embed><script>{WORKBENCH}</script>"
    route.fulfill(body=body, content_type="text/html")


def test_once_try_it_was_pressed_the_page_is_there_without_a_network(first_page, page):
    """With all its pictures; the workbench has its own files (see the tests of its page)."""
    page.route("**/bench/index.html*", show_workbench)
    with served(first_page) as address:
        page.goto(f"{address}/")
        page.locator("#first").click()
        page.wait_for_function(TYPES, arg="01a")
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.goto(f"{address}/?step=12")  # nobody serves it any more
    page.locator(".why:has(.stage)").evaluate(OPEN)
    play_all(page)
    fonts = "document.fonts.ready.then(() => [...document.fonts].map((font) => font.status))"
    assert "error" not in page.evaluate(fonts)


def test_nothing_of_the_workbench_is_fetched_before_try_it_is_pressed(first_page, page):
    """Neither by scrolling, nor by pointing, nor by the keys."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    with served(first_page) as address:
        page.goto(f"{address}/")
        for step in page.locator(".step").all():
            step.scroll_into_view_if_needed()
            step.locator(".try").hover()
            step.locator(".try").focus()
            page.keyboard.press("Tab")
        assert [url for url in asked if "/bench/" in url] == []
        with page.expect_request("**/bench/**"):
            page.locator("[id='00'] .try").click()


@pytest.fixture
def own_page(browser):
    """A page without service workers, which would fetch what the test answers."""
    context = browser.new_context(service_workers="block", reduced_motion="reduce")
    yield context.new_page()
    context.close()


#: Where it is spoken, too.
COPIED = ":is([role=status], [aria-live]) >> text=The link is copied"


COPYING = """
Object.defineProperty(navigator, "share", {value: undefined})
navigator.clipboard.writeText = async (text) => { window.copied = text }
"""


def test_a_sent_riddle_is_the_first_of_its_step(first_page, soup, own_page):
    """Before what tells its answer, with the reader's tries. Its button says for a while that the
    link is copied.
    """
    page = own_page
    page.add_init_script(COPYING)
    with served(first_page) as address:
        page.goto(address)
        for name, made in riddles.RIDDLES.items():
            riddle = page.locator(f"#{name}")
            right = next(n for n, frame in enumerate(made()) if frame.kind == "right")
            for chosen in (right % 4, right - 1):
                riddle.locator("fieldset button").nth(chosen).click()
            send = riddle.locator(".send")
            send.click()
            page.locator(COPIED).wait_for()
            page.keyboard.press("Shift")
            send.get_by_text("Send this riddle").wait_for()
            question = soup.find(id=f"ask-{name}").text
            told = f"A GPU's matrix product: {question} ✗✓ {address}/#{name}"
            assert page.evaluate("window.copied") == told
            step = soup.find(id=name).find_parent("section")
            assert step is None or step.select_one("figure ~ .why .two")
        page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject())")
        send.click()  # what may not be copied is there to be copied by hand
        expect(riddle.get_by_label("Copy this link")).to_have_value(page.evaluate("copied"))
        page.reload()  # what was solved is kept
        for name, made in riddles.RIDDLES.items():
            (right,) = (frame for frame in made() if frame.kind == "right")
            assert page.locator(f"#{name} .film-says").inner_text() == right.says
            assert page.locator(f"#{name} .send").is_visible()
            assert page.locator(f"#{name} [data-kind=wrong]").count() == 1
        links = page.locator(".rail svg a").all()
        assert all(" Gflop/s" in link.get_attribute("aria-label") for link in links)


#: Whether a place is where links lead to.
NEAR = "id => Math.abs(document.getElementById(id).getBoundingClientRect().top - 24) < 8"


@pytest.mark.parametrize(("link", "name"), [("?step=37", "37"), ("#37", "37"), ("#orders", "03")])
def test_a_link_leads_to_its_place(link, name, first_page, page):
    """A riddle's to the title of its step."""
    page.goto(f"{(first_page / 'index.html').as_uri()}{link}")
    page.wait_for_function(NEAR, arg=name)
    page.locator("[data-ready]").first.wait_for(state="attached")
    page.wait_for_function(NEAR, arg=name)


#: Links, and what gets the focus: a riddle's first answer, or a heading.
LINKS = {
    ".skip": "#film button",
    "#film .go-on": "#sizes button",
    ".lead a": "#measured h2",
    "table tr:nth-child(4) .withheld": "#sizes button",
    "table tr:nth-child(6) a": "[id='12'] h3",
    ".rail [href='#37']": "[id='37'] h3",
    "#sizes .go-on": "#orders button",
    "#orders .go-on": "#layouts button",
}


@pytest.mark.parametrize("width", [360, 1280])
def test_the_focus_goes_where_a_link_leads_and_back(width, first_page, page):
    """By a key or the pointer: to a riddle's question and answers. Back, all is where it was."""
    page.set_viewport_size({"width": width, "height": 640})
    for (name, aim), by in product(LINKS.items(), ("key", "pointer")):
        page.goto((first_page / "index.html").as_uri())
        for choice in page.locator(f"{name.split()[0]}.riddle fieldset button").all():
            choice.click()
        link = page.locator(name).first
        link.focus()
        if not link.is_visible():
            continue  # on a phone: the curve at the side
        before = page.evaluate("scrollY")
        link.press("Enter") if by == "key" else link.click()
        expect(page.locator(aim).first).to_be_focused()
        for part in page.locator(f"{aim.split()[0]}.riddle :is(figcaption, fieldset)").all():
            expect(part).to_be_in_viewport(ratio=1)
        if aim != "#film button":
            page.wait_for_function("before => scrollY > before + 400", arg=before)
        page.keyboard.press("Tab")
        page.go_back()
        page.wait_for_timeout(500)  # what the way back shows and hides
        assert page.evaluate("scrollY") == before, name
        expect(link).to_be_focused()


def test_past_the_steps_none_is_current_and_the_menu_closes(first_page, page):
    page.goto(f"{(first_page / 'index.html').as_uri()}?step=lds")
    current = page.locator(".rail [aria-current]")
    current.wait_for(state="attached")
    for leave in (page.locator("h3").last.click, lambda: page.keyboard.press("Escape")):
        page.locator(".menu summary").click()
        assert page.locator(".menu[open]").count() == 1
        leave()
        assert page.locator(".menu[open]").count() == 0
    assert page.locator(".menu summary:focus").count() == 1
    page.evaluate("document.getElementById('measured').scrollIntoView({behavior: 'instant'})")
    current.wait_for(state="detached")
    assert page.locator("#here").inner_text() == ""


IMAGES = "((id) => document.getElementById(id).querySelector('figure img'))"


def test_without_a_network_try_it_says_so(first_page, page):
    """Until the workbench has come once. Once the network is back, pictures come."""
    with served(first_page) as address:
        page.goto(address)
        page.context.set_offline(True)
        try:
            page.locator("[id='03'] .try").click()
            assert "network" in page.locator("[id='03'] .note").inner_text()
            page.locator("[id='37'] figure").scroll_into_view_if_needed()
            page.locator("[id='compute'] .why").evaluate(OPEN)
            page.locator("[id='compute'] figure").scroll_into_view_if_needed()
            page.wait_for_function(f"{IMAGES}('compute').complete")
            assert page.evaluate(f"{IMAGES}('compute').naturalWidth") == 0
        finally:
            page.context.set_offline(False)
        page.wait_for_function(f"{IMAGES}('compute').naturalWidth > 0")
        page.locator("[id='compute'] [data-ready]").first.wait_for(state="attached")


@pytest.mark.parametrize("fault", ["no network", "no page"])
@pytest.mark.parametrize("then", ["03", "12"])
def test_a_workbench_that_did_not_arrive_comes_when_it_is_asked_for_again(
    fault, then, first_page, own_page
):
    """At the same step or another one; until then the step has its picture."""
    replies = [lambda route: route.abort(), lambda route: route.fulfill(status=404, body="none")]
    page = own_page
    page.route("**/bench/index.html*", replies[fault == "no page"])
    with served(first_page) as address:
        page.goto(address)
        page.locator("[id='03'] .try").click()
        assert "didn't arrive" in page.locator("[id='03'] .note").inner_text()
        assert page.locator("[id='03'] figure").is_visible()
        assert page.locator("[id='03'] .try").get_attribute("aria-expanded") == "false"
        page.unroute("**/bench/index.html*")
        page.route("**/bench/index.html*", show_workbench)
        page.locator(f"[id='{then}'] .try").click()
        page.locator(f"[id='{then}'] .bench[data-opened]").wait_for()
        assert page.locator(".bench").count() == 1
        assert page.locator(f"[id='{then}'] .note").count() == 0


def test_on_a_phone_try_it_leads_to_a_place_to_type(first_page, own_page):
    """The workbench's own page; the address of a laptop's workbench leads to its step."""
    page = own_page
    page.set_viewport_size({"width": 390, "height": 844})
    page.route("**/bench/index.html*", show_workbench)
    near = "id => Math.abs(document.getElementById(id).getBoundingClientRect().top - 52) < 30"
    with served(first_page) as address:
        for number, name in enumerate(kernels.KERNELS):
            page.goto(f"{address}/?try={name}" if number % 2 else address)
            if number % 2:
                page.wait_for_function(near, arg=name)
            page.locator(f"[id='{name}'] .try").click()
            page.wait_for_url(f"**/bench/index.html?step={climb_page.page.opened(name).kernel}")


def test_try_it_opens_the_shown_kernel(soup):
    """Or the given one, in which the reader writes lines, or puts the shown ones in order. What
    has no step of the workbench's is named by what its button asks.
    """
    for name, shown in kernels.KERNELS.items():
        opened = climb_page.page.opened(name).kernel
        if opened in STEPS:
            step = STEPS[opened]
            text = step.with_solution() if step.solution else step.starter
            rows = [kernels.comparable(each, "loop") for each in (text, kernels.kernel(name).text)]
            assert rows[0] == rows[1] if opened == name else sorted(rows[0]) == sorted(rows[1])
        else:
            (launch,) = (each for each in bench_page.KERNELS if each.kernel == opened)
            assert launch == Timed(shown.kernel, kernels.N)
            asked = soup.find(id=name).select_one(".try").text.removeprefix("Try it: ")
            assert asked in (bench_page.KERNELS[launch].partition(": ")[2], "change this kernel")


#: From now on, each height that the frame gets.
HEIGHTS = """() => {
  const frame = document.querySelector(".bench iframe")
  window.heights = [frame.offsetHeight]
  new MutationObserver(() => heights.push(frame.offsetHeight)).observe(frame, {attributes: true})
}"""


def test_after_a_success_a_link_opens_the_next_step(first_page, page):
    """In the frame that is there, whose Python goes on."""
    loaded = []

    def answer(route):
        loaded.append(route.request.url)
        show_workbench(route)

    page.route("**/bench/index.html*", answer)
    with served(first_page) as address:
        page.goto(address)
        first, *others = kernels.KERNELS
        page.locator(f"[id='{first}'] .try").click()
        frame = page.frame_locator(".bench iframe")
        for number, name in enumerate(others, 2):
            frame.get_by_role("link", name=f"Next: step {number}", exact=True).click()
            opened = climb_page.page.opened(name).kernel
            page.locator(f"[id='{name}'] .bench[data-opened='{opened}']").wait_for()
            page.wait_for_function(NEAR, arg=name)
            page.wait_for_function(TYPES, arg=name)
            is_here = opened in (name, kernels.KERNELS[name].kernel)  # or else N is another, too
            assert page.locator(f"[id='{name}'] .speed").is_visible() == is_here
        frame.get_by_role("link", name="Next: the contest").click()
        expect(page.locator("#contest h2")).to_be_in_viewport()
        inside = frame.locator("body")
        page.evaluate(HEIGHTS)
        for told in (300, 1200, 300, 1300):
            inside.evaluate("(_, height) => say({type: 'height', height})", told)
        page.wait_for_function("heights.at(-1) === 1304")
        assert page.evaluate("heights.every((high, n) => n === 0 || high >= heights[n - 1])")
    assert len(loaded) == 1


def test_the_browser_goes_back_to_what_was_open_and_loads_it_again(first_page, own_page):
    """Back, forward, and the page again; a link within the page closes nothing."""
    page = own_page
    page.route("**/bench/index.html*", show_workbench)

    where = "document.querySelector('.bench:not([hidden])')?.closest('.step').id"

    def assert_open(name):
        page.wait_for_function(f"name => ({where} ?? '') === name", arg=name)

    with served(first_page) as address:
        page.goto(f"{address}/#orders")
        for name in ("00", "02"):
            page.locator(f"[id='{name}'] .try").click()
            assert_open(name)
            assert page.url.endswith(f"/?try={name}")
        page.locator(".rail svg a").last.press("Enter")
        assert_open("02")
        page.reload()
        assert_open("02")
        page.go_back()
        page.go_back()
        assert_open("00")
        page.go_back()
        assert_open("")
        page.go_forward()
        assert_open("00")
        page.locator("[id='00'] .try").click()
        assert_open("")
        page.reload()
        assert_open("")


#: Where an element is in the page.
PLACE = (
    "(it) => JSON.stringify([it.getBoundingClientRect().x, it.getBoundingClientRect().y + scrollY])"
)


@pytest.fixture
def phone(first_page, browser):
    """The page on a phone that is touched, from a folder."""
    screen = {"width": 360, "height": 640}
    context = browser.new_context(viewport=screen, has_touch=True, reduced_motion="reduce")
    page = context.new_page()
    page.goto((first_page / "index.html").as_uri())
    yield page
    context.close()


def answer_in_turn(page, name, by="tap"):
    """Answer a riddle by each of its buttons, and yield what each shows."""
    for n, frame in enumerate(riddles.RIDDLES[name]()[1:]):
        choice = page.locator(f"#{name} fieldset button").nth(n)
        choice.tap() if by == "tap" else choice.press("Enter" if n % 2 else "Space")
        expect(choice).to_have_attribute("aria-pressed", "true")
        yield frame


def words_of(frame):
    """Return what an answer's button is called."""
    head, *rows = map(Markup.striptags, Markup(frame.choice).split("\n"))
    numbered = [f" ; line {n}: {row}" for n, row in enumerate(rows, 1)]
    return "".join([head.replace(" x ", " × "), *numbered])


@pytest.mark.parametrize(("width", "height"), [(360, 640), (390, 664)])
def test_the_first_riddle_is_on_the_first_screen(width, height, phone):
    """With its candidates and its answer."""
    phone.set_viewport_size({"width": width, "height": height})
    asked = "#film :is(figcaption, .letters, .now, .film-out, fieldset button)"
    for part in phone.locator(f"h1, .about, {asked}").all():
        expect(part).to_be_in_viewport(ratio=1)
    for part in ("#first", "#film .send"):  # the fold cuts none
        box = phone.locator(part).bounding_box()
        assert box["y"] >= height or box["y"] + box["height"] <= height, part


def test_to_move_among_answers_is_not_to_answer(phone):
    phone.locator("#film fieldset button").first.focus()
    for key in ("ArrowDown", "ArrowRight", "Tab", "ArrowUp"):
        phone.keyboard.press(key)
    assert phone.locator("#film fieldset button:focus").count() == 1
    assert phone.locator("#film [aria-pressed=true]").count() == 0


@pytest.mark.parametrize("by", ["tap", "keys"])
def test_an_answer_is_shown_and_spoken_at_once(by, phone):
    """Nothing else is loaded for it, and nothing moves under a finger."""
    loaded = []
    play_all(phone)  # what comes as it comes near is there
    phone.on("request", lambda request: loaded.append(request.url))
    for name, made in riddles.RIDDLES.items():
        riddle = phone.locator(f"#{name}")
        last, told = riddle.locator("fieldset button").last, riddle.locator(".film-says")
        assert riddle.locator("[aria-pressed=true]").count() == 0
        last.focus()
        before = last.evaluate(PLACE), riddle.bounding_box()["height"]
        for frame in answer_in_turn(phone, name, by):
            assert told.inner_text() == frame.says and is_painted(told)
            assert riddle.locator(".film-speed b").inner_text() == f"{frame.gflops:,}"
            spoken = riddle.get_by_role("status").text_content()  # the speed, too, but once
            assert frame.says in spoken and spoken.count(f"{frame.gflops:,}") == 1
            shown = [each.is_visible() for each in riddle.locator(".shown").all()]
            assert shown[-4:] == [each is frame for each in made()[1:]]
            heard = riddle.aria_snapshot()
            assert heard.count(f'button "{words_of(frame)}') == 1 and frame.says in heard
            assert (last.evaluate(PLACE), riddle.bounding_box()["height"]) == before
    assert is_painted(phone.locator("#orders .shown:not([hidden]) .seen b").last)  # a column's name
    assert loaded == []


def test_the_first_riddle_types_its_answer_and_shows_c(phone):
    for frame in answer_in_turn(phone, "film"):
        assert phone.locator(".typed").inner_text() == words_of(frame)
        heard = phone.locator("#film").aria_snapshot()
        assert f"C: {frame.shown[1]}" in heard and heard.count("- cell ") == 64


def test_what_a_riddle_withholds_comes_with_its_answer(phone):
    """Of steps and of the table."""
    for name, made in riddles.RIDDLES.items():
        answered = "[id='01a'] .code pre" if name == "film" else f".step:has(#{name}) .two"
        withheld = f"[data-until={name}] > :is(b, td, .two), {answered}, #{name} :is(.send, .go-on)"
        parts, places = phone.locator(withheld), phone.locator(f"[data-until={name}] .withheld")
        first = next(n for n, frame in enumerate(made()) if frame.kind == "right")
        for n, _ in enumerate(chain([None], answer_in_turn(phone, name))):
            assert {each.is_visible() for each in parts.all()} == {n >= first}
            assert {each.is_visible() for each in places.all()} <= {n < first}


def test_a_solved_riddle_leads_to_the_next(phone):
    leads = []
    for name in riddles.RIDDLES:
        phone.evaluate("name => document.getElementById(name).scrollIntoView()", name)
        expect(phone.locator(f"#{name} fieldset button").last).to_be_in_viewport(ratio=1)
        assert len([*answer_in_turn(phone, name)]) == 4
        on = phone.locator(f"#{name} .go-on")
        expect(on).to_be_in_viewport(ratio=1)
        leads.append(on.get_attribute("href"))
    assert leads == ["#sizes", "#orders", "#layouts", "bench/index.html?step=own"]
    assert on.inner_text() == "4 of 4 solved. Write your own (26 MB)"


@drawn_by_day(("name", "width"), product(pictures.PICTURES, [390, 768]), 3)
def test_no_label_covers_another_on_a_narrow_page(name, width, show):
    page = show(pictures.PICTURES[name].make())
    place = "name => Object.assign(document.body, {className: 'cypresskit stage'}).dataset.picture"
    page.evaluate(f"{place} = name", name)
    page.add_style_tag(content=pictures.style())
    page.set_viewport_size({"width": width - 15, "height": 844})  # 16 more than the picture
    page.wait_for_timeout(1000)
    assert [fault for fault in page.evaluate(JS.faults) if " px: " not in fault] == []
