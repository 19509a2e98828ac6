"""Explain instructions of AMD's IL that cypresskit doesn't support.

``data/left_out.json`` lists their names by section of AMD's specification (version 2.4) or by the
later chip that introduced them, and what to use instead. A star matches any ending.
"""

import json
from collections.abc import Iterable
from importlib.resources import files

from cypresskit.il.errors import did_you_mean
from cypresskit.il.opcodes import OPCODES

#: The form of an instruction, for messages about other text.
FORM = "An instruction is `add r0, r1, r2`: its name, destination and sources."
_TABLE = json.loads(files("cypresskit.data").joinpath("left_out.json").read_text(encoding="utf-8"))
ADVICE = _TABLE["advice"]  # by name of an instruction that AMD's IL never had: what to use
INSTEAD = _TABLE["instead"]  # by the beginning of an instruction's name: what replaces it
REGISTERS = _TABLE["registers"]  # by a pattern for a register's name, earlier chips' too: the same
MODIFIERS = _TABLE["modifiers"]  # by the name of what earlier chips did to a result: the same
#: A section, what is unsupported of it, and the names.
UNSUPPORTED = [(row["section"], row["kind"], row["names"].split()) for row in _TABLE["left out"]]


def explain_unsupported(word: str, than: str = "") -> str:
    """Return why an instruction of AMD's IL isn't supported, and what replaces it.

    Parameters
    ----------
    word
        The instruction as written, in lower case, with its controls.
    than
        The supported opcode that ``word`` begins with; only longer names are looked up.

    Returns
    -------
    The message, or "" if no unsupported name matches.
    """
    for name, why in ADVICE.items():
        if word.startswith(name):
            return f"`{name}` {why}"
    for where, kind, names in UNSUPPORTED:
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


def explain_unknown(word: str, known: Iterable[str], operands: int) -> str:
    """Return a message about an unknown opcode: why it isn't supported, or a similar ``known``
    name. Arithmetic has as many ``operands`` as were written, and its type's letter is rarely
    mistyped.
    """
    if why := explain_unsupported(word.lower()):
        return why
    same = [
        name
        for name in known
        if name not in OPCODES
        or OPCODES[name].kind != "alu"
        or (
            len(OPCODES[name].types.strip("-")) == operands
            and (name[0] not in "diu" or name[0] == word[0].lower())
        )
    ]
    typed = [name for name in known if name[:1] in "diu" and name[1:] == word.lower()]
    guess = did_you_mean(word, typed, 0.5)
    guess = guess or did_you_mean(word, same, 0.65) or did_you_mean(word.split("_")[0], same, 0.65)
    return f"`{word[:40]}` is no instruction of IL.{guess or f' {FORM}'}"
