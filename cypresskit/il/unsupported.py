"""Explain instructions of AMD's IL that cypresskit doesn't support.

``data/left_out.json`` lists their names by section of AMD's specification (version 2.4) or by the
later chip that introduced them, and what to use instead. A star matches any ending.
"""

import json
import re
from collections.abc import Iterable
from importlib.resources import files

from cypresskit.il.errors import did_you_mean
from cypresskit.il.opcodes import OPCODES, Opcode
from cypresskit.tables import listed

#: The form of an instruction, for messages about other text.
FORM = "An instruction is `add r0, r1, r2`: its name, destination and sources."
_TABLE = json.loads(files("cypresskit.data").joinpath("left_out.json").read_text(encoding="utf-8"))
#: What to use, by the name of an instruction that AMD's IL never had.
ADVICE = {name: why for names, why in _TABLE["advice"].items() for name in names.split()}
INSTEAD = _TABLE["instead"]  # by the beginning of an instruction's name: what replaces it
REGISTERS = _TABLE["registers"]  # by a pattern for a register's name, earlier chips' too: the same
MODIFIERS = _TABLE["modifiers"]  # by a control that the subset lacks: the same
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
        if f"{word}_".startswith(f"{name}_"):
            return f"`{name}` {why}"
    for op in OPCODES.values():
        if word == op.hardware.lower() and not op.same:
            return f"`{word}` is an operation of the chip: use `{op.name}`"
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
                use = next((f" Use {use}." for use in uses), " Leave it out.")
                return (
                    f"`{word[:40]}` is not in cypresskit's subset of AMD's IL ({where}:"
                    f" {kind}).{use}"
                )
    return ""


def explain_unknown(word: str, known: Iterable[str], operands: int) -> str:
    """Return a message about an unknown opcode: why it isn't supported, or the ``known`` names that
    are meant: those that begin with the word, or lack only its type's letter. Otherwise a similar
    one; of arithmetic only one of the same letters, type and number of ``operands``, since another
    letter is another operation: ``ile`` isn't ``ine``.
    """
    low = word.lower()
    if why := explain_unsupported(low):
        return why
    names = list(known)
    bare = low.removeprefix("f")  # as in C's names: fadd
    meant = [name for name in names if name == bare or (name[0] in "iu" and name[1:] == low)]
    meant = meant or [name for name in names if len(low) > 3 and name.startswith(low)]
    if meant[1:]:
        several = listed([f"`{name}`" for name in meant])
        return f"`{word[:40]}` is no instruction of IL. There are {several}."
    meant = meant or [name for name in names if _is_misspelled(low, OPCODES.get(name), operands)]
    others = [name for name in names if name not in OPCODES or OPCODES[name].kind != "alu"]
    guess = did_you_mean(low, meant, 0.0) or did_you_mean(low, others, 0.8)
    return f"`{word[:40]}` is no instruction of IL.{guess or f' {FORM}'}"


def _is_misspelled(word: str, op: Opcode | None, operands: int) -> bool:
    """Return whether a word has the letters of arithmetic with so many operands, in another order
    or twice in a row, and begins with the letter of its type.
    """
    if op is None or op.kind != "alu" or len(op.types.strip("-")) != operands:
        return False
    letters, known = (sorted(re.sub(r"(.)\1+", r"\1", each)) for each in (word, op.name))
    return letters == known and (word[0] == op.name[0] or not {word[0], op.name[0]} & set("diu"))
