"""The rules of `tools.check_imports`: each reports a violation, and nothing else."""

import ast

from sampling import from_rows

from tools import check_imports


def broken(rule, **changed):
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
    return getattr(check_imports, rule)(
        files | {"__init__.py": ast.parse("import cypresskit.draw.player")}
    )


@from_rows
def test_a_violation_is_reported(rule, changed, words):
    assert not broken(rule)
    (violation,) = broken(rule, **changed)
    assert words in violation


@from_rows
def test_a_script_of_a_higher_layer_is_reported(python, script, words):
    files = {"draw/display.py": ast.parse(python)}
    scripts = {
        "draw/start.js": script,
        "draw/shell.js": "",
        "teach/l03/game.js": 'import {make} from "../../draw/shell.js"',
    }
    found = check_imports.find_wrong_scripts(files, scripts)
    assert len(found) == bool(words)
    assert all(words in line for line in found)
