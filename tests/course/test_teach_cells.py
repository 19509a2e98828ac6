"""A cell is read as IPython reads it: what it sets there, an answer made of it has, too; or the
verdict names the magic that isn't run.
"""

import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import seeded

from cypresskit.isolated.serving import CellError, Server
from cypresskit.teach import bindings, check
from cypresskit.teach.answer_source import AnswerSource

NAMES = "half", "double", "text"
#: Values, some of which look like magics inside of strings, comments and formulas.
VALUES = (
    *("3", "[1, 2][0]", "'%time 3'", "'''\n%%time\n!ls\nhalf?\n'''", "7 \\\n% 4", "(7\n% 4)"),
    *("f'{3!r:>4}'", "'a' '!b'", "len('x?')", "1 # %magic", "sum(n for n in (1, 2))", "3 != 4"),
    # Names of a comprehension are its own; what it assigns by `:=` isn't.
    *("[half for half in (1, 2)]", "{text: double for text, double in ((1, 2),)}"),
    *("[half := n for n in (1, 2)]", "sum(n for half in ((1, 2),) for n in half)"),
)
LINES = (
    *("%matplotlib inline", "!true", "%time 1 + 1", "half?", "?half", "%pwd", "%timeit -n1 -r1 3"),
    *("# %%time", "display(3)", "%time !true", "%who_ls", "%precision 3", "%%time not one"),
    *("import math", "await asyncio.sleep(0)", "print('!ls')", "%prun -q -l 1 3", "x = %pwd"),
)
HEADS = "%%time", "%%capture", "%%capture out --no-stderr", "%%prun -q", "%%time --no-raise-error"
LOST = "%%timeit -n1 -r1", "%%writefile -a /dev/null", "%%writefile /dev/null", "%%html"
REFUSED = "!echo 3", "%pwd", "%timeit -o -n1 -r1 3", "%who_ls", "%env HOME"


def statement(chance: random.Random) -> str:
    """Something that sets a name, perhaps by a magic."""
    name, value = chance.choice(NAMES), chance.choice(VALUES)
    one_line = "\n" not in value and "#" not in value
    forms = [f"{name} = {value}", f"if True:\n    %pwd\n    {name} = 5", f"{name} = {name} = 6"]
    forms += [f"def {name}():\n    !true\n    %time 1\n    return 4"]
    forms += [f"for {name} in (n for n in (1, 2)):\n    text = {name}"]
    if one_line:
        forms += [
            f"{name} = %time {value}",
            f"%time {name} = {value}",
            f"%prun -q {name} = {value}",
        ]
        forms += [f"{name}, other = %time ({value}, 1)", f"{name} = await give({value})"]
    if chance.random() < 0.1:
        forms = [f"{name} = {chance.choice(REFUSED)}"]
    return chance.choice(forms)


def cell(chance: random.Random) -> str:
    """A cell as a student may write it."""
    parts = [chance.choice([statement(chance), chance.choice(LINES)]) for _ in range(4)]
    text = "\n".join(parts[: chance.randrange(1, 5)])
    heads = chance.choices([(), HEADS, LOST], [6, 3, 1])[0]
    if heads and "await" not in text:  # there IPython can't
        text = f"{chance.choice(heads)}\n{text}"
    if text[0] == "%" and "await" not in text and chance.random() < 0.2:
        text = f"%%capture\n{text}"
    text = "\n" * chance.randrange(3) + text
    if chance.random() < 0.1:
        text = "\n".join(f"  {line}" for line in text.split("\n")) if "'''" not in text else text
    return text.replace("\n", "\r\n") if chance.random() < 0.05 else text


BEGIN = "import asyncio\nasync def give(value):\n    return value"


@pytest.fixture(scope="module")
def run_there():
    """A function that runs cells in a new namespace of IPython, and returns it."""
    shell_type = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    config = pytest.importorskip("traitlets.config").Config({"HistoryManager": {"enabled": False}})
    shell = shell_type.instance(config=config)

    def run(cells: list[str]) -> dict | None:
        shell.reset()
        ran = [shell.run_cell(text).success for text in cells]
        return dict(shell.user_ns) if all(ran) else None

    def run_apart(cells: list[str]) -> dict | None:
        with ThreadPoolExecutor(1) as thread:  # the main one may have Chromium's event loop
            return thread.submit(run, cells).result()

    yield run_apart
    shell_type.clear_instance()


def made_here(cells: list[str], name: str):
    """The answer that cells make; or the error's text."""
    needed = AnswerSource(cells, name).needed_cells()
    if not any(each.sets for each in needed):
        return f"There is no {name}: {bindings.find_refused_magic(cells, name)}"
    try:
        with ThreadPoolExecutor(1) as thread:
            run = thread.submit(Server(print).run_cells, [each._asdict() for each in needed], name)
            return run.result()
    except CellError as error:
        return f"{error}"


@seeded(40)
def test_a_cell_that_ran_in_a_notebook_gives_the_same_answer_or_names_the_magic(
    seed, run_there, capsys, monkeypatch, tmp_path
):
    chance = random.Random(f"{seed} {random.random()}")  # `--new` draws others
    monkeypatch.chdir(tmp_path)
    cells = [BEGIN, *(cell(chance) for _ in range(chance.randrange(1, 4)))]
    there = run_there(cells)
    for name in NAMES if there is not None else ():
        here = made_here(cells, name)
        known = there.get(name)
        if name not in there:
            assert "There is no" in str(here), (cells, here)
            continue
        same = (callable(known) and callable(here) and known() == here()) or known == here
        refused = isinstance(here, str) and re.search(r"(%%?\w+|![^`]*)`? isn't run", here)
        assert same or refused, (cells, name, known, here)


def test_a_verdict_names_the_magic_that_keeps_a_name_from_being_set():
    verdict = check.exercise(lambda half: None)(AnswerSource(["%%timeit\nhalf = 3"], "half"))
    assert "There is no half" in verdict.message and "%%timeit" in verdict.hint
