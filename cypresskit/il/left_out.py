"""The parts of AMD's IL that cypresskit's subset leaves out: names by kind, with the section of
AMD's specification (version 2.4) or the later chip that they come from: ``data/left_out.json``. A
star stands for any ending.
"""

import json
from collections.abc import Iterable
from importlib.resources import files

from cypresskit.il.errors import nearest

#: What an instruction looks like, for those who wrote something else.
FORM = "An instruction is `add r0, r1, r2`: its name, destination and sources (`cypresskit il`)."
_TABLE = json.loads(files("cypresskit.data").joinpath("left_out.json").read_text(encoding="utf-8"))
#: Names that another chip's IL has, or that people write, and what to use here; and what to use for
#: some names of IL.
ADVICE, INSTEAD = _TABLE["advice"], _TABLE["instead"]
#: Section and title, what is left out of it, and names.
LEFT_OUT = [(row["section"], row["kind"], row["names"].split()) for row in _TABLE["left out"]]


def left_out(word: str, than: str = "") -> str:
    """A message that says why an instruction of AMD's IL isn't taken; "" for a ``word`` that IL
    doesn't have, or where no name left out is longer ``than`` the opcode that the word begins
    with.
    """
    for name, why in ADVICE.items():
        if word.startswith(name):
            return f"`{name}` {why}"
    for where, kind, names in LEFT_OUT:
        for name in names:
            if name.endswith("*"):
                matches = word.startswith(name[:-1])
            else:
                matches = f"{word}_".startswith(f"{name}_")
            if len(name) > len(than) and matches:
                uses = (
                    use for begin, use in INSTEAD.items() if word.startswith(tuple(begin.split()))
                )
                use = next((f" Use {use}." for use in uses), "")
                return (
                    f"`{word[:40]}` is not in cypresskit's subset of AMD's IL ({where}:"
                    f" {kind}).{use}"
                )
    return ""


def unknown(word: str, known: Iterable[str]) -> str:
    """A message about a word that is no instruction: why it was left out, or the nearest of the
    ``known`` names.
    """
    kind = next((start for start in ("dcl_", "lds_") if word.lower().startswith(start)), "")
    same = [
        name
        for name in known
        if name.startswith(kind) and (kind or not name.startswith(("dcl_", "lds_")))
    ]
    if why := left_out(word.lower()):
        return why
    guess = nearest(word, same, 0.65) or nearest(word.split("_")[0], same, 0.65)
    return f"`{word[:40]}` is no instruction of IL.{guess or f' {FORM}'}"
