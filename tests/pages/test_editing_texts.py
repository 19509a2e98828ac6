"""Which text is known where: ``texts.js`` in Chromium, answered by the real conversation."""

import json
import random
from collections import deque

import pytest
from actors import SETTINGS, Actor
from sampling import seeded

from cypresskit.draw.scripts import read_packaged
from cypresskit.editing.conversation import Conversation
from cypresskit.editing.kernel_file import KernelFile, is_writable

LOAD = """async (code) => {
    const {Texts} = await import("data:text/javascript," + encodeURIComponent(code))
    const pages = [], stores = {}
    window.open = (store, state) => {
        const held = (stores[store] ??= new Map())
        const getItem = (key) => held.get(key) ?? held.get("any") ?? null
        const setItem = (key, value) => {
            if (value.length > 1e6) throw new Error("The quota has been exceeded")
            held.set(key, value)
        }
        return pages.push(new Texts(state, () => ({getItem, setItem}))) - 1
    }
    window.rename = (page, name) => (pages[page].view = name)
    window.put = (store, value) => (stores[store] = new Map([["any", value]]))
    window.act = (page, name, ...given) => {
        const texts = pages[page], before = texts.draft
        const got = texts[name](...given)
        return {got, before, names: texts.names(given[0]?.edit), ...texts}
    }
}"""


class Python:
    """The conversation, which may end at any time and begin again; and all texts that it took."""

    def __init__(self, path):
        self.path, self.taken = path, []
        self.begin()

    def begin(self):
        self.talk = Conversation(KernelFile(self.path), SETTINGS, Actor)
        self.taken.append(self.talk.text)
        self.talk.pages.append(self.note)

    def note(self, message):
        if message["type"] == "text":
            self.taken.append(message["text"])


class Tab:
    """A tab of the browser with the workbench, and the messages on their way to and from it."""

    def __init__(self, page, name, python):
        self.page, self.name, self.python = page, name, python
        self.texts = self.left = None  # now, and when the tab was left
        self.at = 0  # which of Python's texts it showed last
        self.reload()

    def reload(self, arrive=0):
        """Of what was sent, some may still arrive."""
        for _ in range(arrive):
            self.deliver_up()
        if self.texts is not None:
            self.left = self.act("names")
        self.texts, self.typed = None, False
        self.up, self.down = deque([{"type": "hello"}]), deque()

    def act(self, name, *given):
        return self.page.evaluate("(given) => act(...given)", [self.texts, name, *given])

    def take_message(self, message):
        self.down.append((len(self.python.taken) - 1, dict(message)))

    def deliver_up(self):
        if self.up:
            talk = self.python.talk
            if self.take_message not in talk.pages:
                talk.pages.append(self.take_message)
            talk.hear(self.up.popleft(), self.take_message)

    def deliver_down(self):
        """Do what the page does with a message."""
        if not self.down:
            return
        at, message = self.down.popleft()
        kind = message["type"]
        if kind == "state":
            self.begin(at, message)
        elif self.texts is not None and kind == "text":
            self.follow(at, message)
        elif self.texts is not None and kind == "heard":
            self.act("heard", message)

    def begin(self, at, state):
        state = {name: state[name] for name in ("file", "text", "edit")}
        is_new = self.texts is None
        if is_new:
            self.texts = self.page.evaluate("(given) => open(...given)", [self.name, state])
        seen = self.act("begin", state)
        self.up += seen["got"]
        left, self.left = self.left, None
        since = self.python.taken[self.at : at + 1]
        if is_new and left and left["stage"] != "saved":
            grown = sorted(text for text in since if left["draft"].startswith(text))
            if since == grown:
                assert seen["draft"] == left["draft"], "made from the file's, it is the newest"
        elif seen["draft"] != seen["before"] and seen["stage"] == "saved":
            assert seen["before"] in since, "an older text replaced a newer"
        if seen["stage"] == "saved":
            self.at = at

    def follow(self, at, message):
        """Show another editor's text. It is newer than what it replaces."""
        known = {name: message[name] for name in ("text", "edit")}
        seen = self.act("take", known)
        if seen["got"]:
            assert not message["edit"].startswith(seen["view"]), "a page's own text is no news"
            assert seen["before"] in self.python.taken[:at], "an older text replaced a newer"
            self.at = at
            assert seen["names"] and seen["draft"] == message["text"]
            self.up.append({"type": "shown", "edit": message["edit"]})
        else:
            assert seen["draft"] == seen["before"]

    def type(self, words):
        self.act("type", self.act("names")["draft"] + words)
        self.typed = True

    def send(self, *base):
        self.typed = False
        self.up.append(self.act("send", *base)["got"])


class Acts:
    """What may happen to a kernel's file in three tabs: each act once, in a tab, by chance."""

    def __init__(self, page, path, rng):
        self.rng, self.path, self.python = rng, path, Python(path)
        self.tabs = [Tab(page, str(n), self.python) for n in range(3)]
        self.typed, self.outside = [], [path.read_text()]

    def type_text(self, tab):
        if tab.texts is not None:
            self.typed.append(f"<{len(self.typed)}>")
            tab.type(self.typed[-1])

    def send(self, tab):
        if tab.typed:
            tab.send()

    def arrive(self, tab):
        tab.deliver_up()

    def be_answered(self, tab):
        tab.deliver_down()

    def lock(self, tab):
        """What can't be written now is written later."""
        self.path.chmod(self.path.stat().st_mode ^ 0o222)

    def change_outside(self, tab):
        """Another editor changes the file."""
        if is_writable(self.path):
            self.outside.append(f"; theirs {len(self.outside)}")
            self.path.write_text(self.outside[-1])
            self.python.talk.look()

    def recall(self, tab):
        if edits := [*self.python.talk.edits]:
            tab.up.append({"type": "recall", "entry": self.rng.choice(edits).number})

    def hello(self, tab):
        """Another view of the widget opens."""
        tab.up.append({"type": "hello"})

    def reload(self, tab):
        tab.reload(self.rng.randint(0, len(tab.up)))

    def end_python(self, tab):
        self.python.begin()
        for each in self.tabs:
            each.up, each.down = deque([{"type": "hello"}]), deque()
            if self.rng.random() < 0.5:
                each.reload()

    RARE = lock, change_outside, recall, hello, reload, end_python
    ALL = (type_text,) * 5 + (send,) * 4 + (arrive,) * 6 + (be_answered,) * 8 + RARE

    def happen(self):
        self.rng.choice(self.ALL)(self, self.rng.choice(self.tabs))

    def settle(self):
        """All that was typed is sent, and every message arrives."""
        self.path.chmod(0o644)
        while any(tab.up or tab.down or tab.typed for tab in self.tabs):
            for tab in self.tabs:
                self.send(tab)
                tab.deliver_up()
                tab.deliver_down()
            self.python.talk.look()


@seeded(8)
def test_no_text_is_lost_and_none_replaced_by_an_older_one(seed, page, tmp_path):
    """The law: typing in several tabs, another editor, texts of the history, messages that are
    late, tabs that are reloaded, and the end of Python, each at any time.
    """
    path = tmp_path / "my.il"
    path.write_text("; 0")
    page.evaluate(LOAD, read_packaged("editing/texts.js"))
    acts = Acts(page, path, random.Random(seed))
    for _ in range(150):
        acts.happen()
    acts.settle()
    now = path.read_text()
    kept = [now, *(edit.text for edit in acts.python.talk.edits)]
    assert [word for word in acts.typed if not any(word in text for text in kept)] == []
    assert set(acts.outside) <= set(kept)
    seen = [tab.act("names") for tab in acts.tabs]
    assert [(one["draft"], one["stage"]) for one in seen] == [(now, "saved")] * len(acts.tabs)


class View:
    """A view of the file in a tab that has the storage ``store``."""

    def __init__(self, page, store, text, edit="file-0"):
        self.page = page
        state = {"file": "f", "text": text, "edit": edit}
        self.at = page.evaluate("(given) => open(...given)", [store, state])
        self.messages = self.act("begin", state)["got"]
        self.told = []  # edits and texts that were sent

    def act(self, name, *given):
        return self.page.evaluate("(given) => act(...given)", [self.at, name, *given])

    @property
    def draft(self):
        return self.act("names")["draft"]

    def type(self, text):
        self.act("type", text)

    def send(self):
        message = self.act("send")["got"]
        self.told.append((message["edit"], message["text"]))

    def hear(self, number, problem=""):
        edit = self.told[number][0]
        self.act("heard", {"edit": edit, "problem": problem})


@pytest.fixture
def texts(page):
    page.evaluate(LOAD, read_packaged("editing/texts.js"))
    return page


@seeded(12)
def test_a_draft_is_restored_whichever_of_its_texts_python_has(seed, texts):
    """The law: of the texts in flight, Python may have any, and may have said so, or not."""
    rng = random.Random(seed)
    size = rng.choice([0, 40_000])  # a text that would fill the storage if it were kept each time
    view, words = View(texts, "a", "T"), "T"
    for number in range(rng.randint(1, 40)):
        words += f"<{number}>"
        view.type(words + " " * size)
        view.send()
    view.type(words + "last")
    taken = rng.randrange(len(view.told))
    heard = [number for number in range(taken + 1) if rng.random() < 0.3]
    for number in heard:
        view.hear(number, rng.choice(["", "It can't be written."]))
    text = view.told[taken][1]
    edit = rng.choice([view.told[taken][0], "file-0"])  # Python is the same, or a new one
    after = View(texts, "a", text, edit)
    assert after.draft == words + "last"
    assert [message["type"] for message in after.messages] == ["text"]


def test_a_draft_is_restored_that_is_made_of_what_was_heard_of_an_earlier_text(texts):
    """And one that isn't made of the file's any more is not."""
    for text, expected in (("X1", "X3"), ("T0", "T0")):
        view = View(texts, text, "T0")
        view.type("X1")
        view.send()
        view.type("X2")
        view.send()
        view.hear(0)
        view.type("X3")
        assert View(texts, text, text).draft == expected


@seeded(8)
def test_of_several_views_drafts_the_one_typed_last_is_restored(seed, texts):
    """Whatever the names of the views are, and whenever Python answers."""
    rng = random.Random(seed)
    names = rng.sample(["9", "10", "b", "a", "0", "zz"], 4)
    views = [View(texts, "a", "T") for _ in names]
    for view, name in zip(views, names, strict=True):
        texts.evaluate("(given) => rename(...given)", [view.at, name])
    last = ""
    for number in range(20):
        view = rng.choice(views)
        last = f"T{number}"
        view.type(last)
        view.send()
        other = rng.choice(views)
        if other.told and rng.random() < 0.5:
            other.hear(rng.randrange(len(other.told)), "It can't be written.")
    assert View(texts, "a", "T").draft == last


def any_value(rng, depth=0):
    """A value of JSON, of any shape, often much like what is stored."""
    names = ["f", "zz", "text", "bases", "view", "length", "filter", "__proto__", "constructor"]
    kind = rng.choice(["plain", "list", "object", "object"] if depth < 4 else ["plain"])
    if kind == "list":
        return [any_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if kind == "object":
        some = rng.sample(names, rng.randint(0, 4))
        return {name: any_value(rng, depth + 1) for name in some}
    return rng.choice([None, True, 0, -1.5, "", "T", "older", "f"])


STRANGE = [{"f": {"zz": {"text": "older"}}}, {"f": None}, {"f": {"zz": None}}, [None], [[]], "f"]


def opens_whatever_is_stored(page, value):
    page.evaluate("(given) => put(...given)", ["a", value])
    view = View(page, "a", "T")
    for message in view.messages:
        assert isinstance(message.get("text", ""), str)
        assert isinstance(message["edit"], str)
    assert isinstance(view.draft, str)
    view.type("mine")
    view.send()
    assert View(page, "a", "mine").draft == "mine"


@pytest.mark.parametrize("value", STRANGE)
def test_a_page_opens_whatever_its_storage_holds(value, texts):
    opens_whatever_is_stored(texts, json.dumps(value))


@seeded(1)
def test_a_page_opens_whatever_json_its_storage_holds(seed, texts):
    rng = random.Random(seed)
    opens_whatever_is_stored(texts, "{no JSON")
    for _ in range(150):
        opens_whatever_is_stored(texts, json.dumps(any_value(rng)))
