"""The rules of `tools.check_imports`: each reports a violation, and nothing else."""

import ast

import pytest

from tools.check_imports import (
    find_duplicate_names,
    find_import_cycles,
    find_wrong_imports,
    find_wrong_scripts,
)


def broken(rule, **changed: str) -> list[str]:
    """Return the violations in a small package with these `changed` files (a__b is a/b.py)."""
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
            find_wrong_imports,
            {"il__lexer": "from cypresskit.timing.chip import x"},
            "il/lexer.py imports timing/chip.py, of a higher layer",
        ),
        (
            find_wrong_imports,
            {"il__lexer": "if TYPE_CHECKING:\n import cypresskit.timing.chip"},
            "of a higher layer",
        ),
        (find_wrong_imports, {"il__lexer": "import cypresskit"}, "il/lexer.py imports __init__.py"),
        (find_wrong_imports, {"timing__chip": "import bokeh.models"}, "which only draw may"),
        (find_wrong_imports, {"attic__box": ""}, "in no layer"),
        (
            find_import_cycles,
            {"il__lexer": "def f():\n from cypresskit.il import parser"},
            "of 2 files: il/lexer.py, il/parser.py",
        ),
        (
            find_duplicate_names,
            {"il__lexer": "class A: pass", "timing__chip": "class A: pass"},
            "class A is in",
        ),
        (
            find_duplicate_names,
            {"timing__lexer": ""},
            "il/lexer.py, timing/lexer.py have the same name",
        ),
    ],
)
def test_a_violation_is_reported(rule, changed, words):
    assert not broken(rule)
    (violation,) = broken(rule, **changed)
    assert words in violation


@pytest.mark.parametrize(
    "python, script, words",
    [
        (
            "",
            'import {a} from "../teach/l03/game.js"',
            "draw/start.js uses teach/l03/game.js, of a higher layer",
        ),
        ("", 'import {\n  a,\n  b,\n} from "../teach/l03/game.js"', "draw/start.js uses teach/l03"),
        ('MODULES = ("draw/start.js", "teach/l03/game.js")', "", "draw/display.py uses teach/l03"),
        ('MODULES = ("draw/start.js",)', 'import {a} from "./shell.js"', ""),
    ],
)
def test_a_script_of_a_higher_layer_is_reported(python, script, words):
    files = {"draw/display.py": ast.parse(python)}
    scripts = {
        "draw/start.js": script,
        "draw/shell.js": "",
        "teach/l03/game.js": 'import {make} from "../../draw/shell.js"',
    }
    found = find_wrong_scripts(files, scripts)
    assert len(found) == bool(words)
    assert all(words in line for line in found)
