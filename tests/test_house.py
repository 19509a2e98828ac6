"""The rules of the house, which `make lint` holds the sources to: each names what breaks it, and is
silent otherwise.
"""

import ast

import pytest

from tools.house import arrows, circles, doubles, mixed_assignments, script_arrows


def broken(rule, **changed: str) -> list[str]:
    """What a rule says of a small package in which `changed` files have been written (a__b is
    a/b.py).
    """
    text = {
        "il__lexer": "",
        "il__parser": "from cypresskit.il import lexer",
        "timing__chip": "",
        "draw__player": "",
    }
    files = {
        f"{name.replace('__', '/')}.py": ast.parse(source)
        for name, source in (text | changed).items()
    }
    return rule(files | {"__init__.py": ast.parse("import cypresskit.draw.player")})


@pytest.mark.parametrize(
    "rule, changed, words",
    [
        (
            arrows,
            {"il__lexer": "from cypresskit.timing.chip import x"},
            "il/lexer.py -> timing/chip.py points upwards",
        ),
        (
            arrows,
            {"il__lexer": "if TYPE_CHECKING:\n import cypresskit.timing.chip"},
            "points upwards",
        ),
        (arrows, {"il__lexer": "import cypresskit"}, "il/lexer.py -> __init__.py points upwards"),
        (
            arrows,
            {"timing__chip": "def f():\n from cypresskit.il import lexer"},
            "il/lexer.py inside a function",
        ),
        (arrows, {"timing__chip": "def f():\n import numpy"}, "numpy inside a function"),
        (arrows, {"timing__chip": "import bokeh.models"}, "which is for draw"),
        (arrows, {"attic__box": ""}, "on no floor"),
        (
            circles,
            {"il__lexer": "def f():\n from cypresskit.il import parser"},
            "il/lexer.py, il/parser.py, of 2",
        ),
        (doubles, {"il__lexer": "class A: pass", "timing__chip": "class A: pass"}, "class A is in"),
        (doubles, {"timing__lexer": ""}, "il/lexer.py, timing/lexer.py have one name"),
        (mixed_assignments, {"il__lexer": "k, n = find(text), 8"}, "il/lexer.py:1: give each of"),
    ],
)
def test_a_rule_that_is_broken_says_so(rule, changed, words):
    assert not broken(rule)
    (violation,) = broken(rule, **changed)
    assert words in violation


@pytest.mark.parametrize(
    "statement",
    [
        "a, b = b, a + b",
        "row, column = 8 * y, 4 * x",
        "low, high = bounds[0], bounds[-1]",
        "first, *others = f(text), 8",
        "a, b = pair",
    ],
)
def test_assignments_of_like_things_are_silent(statement):
    assert not broken(mixed_assignments, il__lexer=statement)


@pytest.mark.parametrize(
    "python, script, words",
    [
        ("", 'import {a} from "../teach/l03/game.js"', "draw/start.js -> teach/l03/game.js points"),
        ("", 'import {\n  a,\n  b,\n} from "../teach/l03/game.js"', "draw/start.js -> teach/l03"),
        ('MODULES = ("draw/start.js", "teach/l03/game.js")', "", "draw/display.py -> teach/l03"),
        ('MODULES = ("draw/start.js",)', 'import {a} from "./shell.js"', ""),
    ],
)
def test_a_script_that_knows_a_higher_floor_is_named(python, script, words):
    files = {"draw/display.py": ast.parse(python)}
    scripts = {
        "draw/start.js": script,
        "draw/shell.js": "",
        "teach/l03/game.js": 'import {make} from "../../draw/shell.js"',
    }
    said = script_arrows(files, scripts)
    assert len(said) == bool(words)
    assert all(words in line for line in said)
