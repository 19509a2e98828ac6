"""A cell is read as IPython reads it: what it sets there, an answer made of it has, too; or the
verdict names the magic that isn't run.
"""

import random
import re

import pytest
from sampling import ROWS, seeded
from waiting import without_a_loop

from cypresskit.isolated.serving import Refused, Server
from cypresskit.teach import bindings, check
from cypresskit.teach.answer_source import AnswerSource

NAMES = "half", "double", "text"


def statement(chance):
    """Something that sets a name, perhaps by a magic."""
    name, value = chance.choice(NAMES), chance.choice(ROWS["test_teach_cells"]["cell_values"])
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
        forms += [f"{name}, other = %time ({value}, 1)"]
    if chance.random() < 0.1:
        forms = [f"{name} = {chance.choice(ROWS['test_teach_cells']['refused_values'])}"]
    return chance.choice(forms)


def cell(chance):
    """A cell as a student may write it."""
    parts = [
        chance.choice([statement(chance), chance.choice(ROWS["test_teach_cells"]["cell_lines"])])
        for _ in range(4)
    ]
    text = "\n".join(parts[: chance.randrange(1, 5)])
    heads = chance.choices(
        [(), ROWS["test_teach_cells"]["cell_heads"], ROWS["test_teach_cells"]["lost_heads"]],
        [6, 3, 1],
    )[0]
    if heads:
        text = f"{chance.choice(heads)}\n{text}"
    if text[0] == "%" and chance.random() < 0.2:
        text = f"%%capture\n{text}"
    text = "\n" * chance.randrange(3) + text
    if chance.random() < 0.1:
        text = "\n".join(f"  {line}" for line in text.split("\n")) if "'''" not in text else text
    return text.replace("\n", "\r\n") if chance.random() < 0.05 else text


@pytest.fixture(scope="module")
def run_there():
    """A function that runs cells in a new namespace of IPython, and returns it."""
    shell_type = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    config = pytest.importorskip("traitlets.config").Config({"HistoryManager": {"enabled": False}})
    shell = shell_type.instance(config=config)

    @without_a_loop
    def run(cells):
        shell.reset()
        ran = [shell.run_cell(text).success for text in cells]
        return dict(shell.user_ns) if all(ran) else None

    yield run
    shell_type.clear_instance()


def made_here(cells, name):
    """The answer that cells make; or the error's text."""
    needed = AnswerSource(cells, name).needed_cells()
    if not any(each.sets for each in needed):
        return f"There is no {name}: {bindings.find_refused_magic(cells, name)}"
    try:
        run = without_a_loop(Server(print).run_cells)
        return run([each._asdict() for each in needed], name)
    except Refused as error:
        return f"{error}"


@seeded(40)
def test_a_cell_that_ran_in_a_notebook_gives_the_same_answer_or_names_the_magic(
    seed, run_there, capsys, monkeypatch, tmp_path
):
    chance = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    there = None
    while there is None:  # one of the cells failed
        cells = [cell(chance) for _ in range(chance.randrange(1, 4))]
        there = run_there(cells)
    for name in NAMES:
        here = made_here(cells, name)
        known = there.get(name)
        refused = isinstance(here, str) and re.search(
            r"(%%?(?!capture|prun)\w+|![^`]*)`? isn't run|There is no \w+: %%\w+", here
        )
        if name not in there:
            hidden = "%%capture" in "".join(cells)  # that a line of it failed
            assert hidden or "There is no" in str(here), (cells, here)
            continue
        same = (callable(known) and callable(here) and known() == here()) or known == here
        assert same or refused, (cells, name, known, here)


def test_a_verdict_names_the_magic_that_keeps_a_name_from_being_set():
    verdict = check.exercise(lambda half: None)(AnswerSource(["%%timeit\nhalf = 3"], "half"))
    assert "There is no half" in verdict.message and "%%timeit" in verdict.hint
