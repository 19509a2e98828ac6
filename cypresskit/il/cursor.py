"""A cursor over one line of IL text: what the readers of statements, operands and declarations
share.
"""

import re
from typing import NoReturn

from cypresskit.il.bits import ALL
from cypresskit.il.foreign import operator_slip
from cypresskit.il.opcodes import opcode_in

_COMMENT = re.compile(r";|//")
_WORD = re.compile(r"[^\s,]+|,")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
BRACKETS = re.compile(r"\(([^()]*)\)")
COLOURS = str.maketrans("rgba", "xyzw")


def without_remark(line: str) -> str:
    """A line of IL up to its remark, which begins with ``;`` or ``//``."""
    return _COMMENT.split(line, maxsplit=1)[0].rstrip()


class FaultAt(Exception):
    """A fault at a column of the line being read."""

    def __init__(self, column: int, message: str):
        super().__init__(message)
        self.column, self.message = column, message


class Line:
    """A cursor over one source line without its comment."""

    def __init__(self, text: str, number: int):
        self.text = without_remark(text)
        self.number = number
        self.at = 0
        self.skip()

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\f\v\ufeff":
            self.at += 1

    def take(self, pattern: re.Pattern) -> re.Match | None:
        """Match ``pattern`` at the cursor and move behind it. Returns the match or None."""
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def eat(self, character: str) -> bool:
        """Move behind ``character`` if it comes next. Returns whether it did."""
        self.skip()
        matches = self.text.startswith(character, self.at)
        self.at += len(character) if matches else 0
        return matches

    def expect(self, character: str, why: str) -> None:
        """``eat``, or a fault that says what the character is for."""
        if not self.eat(character):
            self.fail(f"expected `{character}` {why}, found {self.rest()}")

    def rest(self) -> str:
        """The word at the cursor, quoted for a message."""
        self.skip()
        word = _WORD.match(self.text, self.at)
        return f"`{word.group()[:24]}`" if word else "the end of the line"

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise the fault, at column index ``at`` or at the cursor."""
        raise FaultAt((self.at if at is None else at) + 1, message)

    def integer(self, what: str) -> int:
        """A whole number of 32 bits; ``what`` names it in a fault."""
        self.skip()
        start = self.at
        match = self.take(_INTEGER)
        if not match:
            self.fail(f"expected {what} (a whole number), found {self.rest()}", start)
        return whole(match.group(), self, start)


def whole(text: str, line: Line, at: int) -> int:
    """The number that decimal or hexadecimal ``text`` is, as long as it fits in 32 bits."""
    if len(text) > 10:
        line.fail(f"the number `{text[:16]}...` does not fit in 32 bits", at)
    value = int(text, 0) if text[:2].lower() == "0x" else int(text)
    if value > ALL:
        line.fail(f"the number `{text}` does not fit in 32 bits", at)
    return value


def count(text: str, line: Line, at: int) -> int:
    """The whole number inside an opcode's brackets."""
    if not _INTEGER.fullmatch(text):
        word = re.match(r"\w*", line.text[at:])
        written = f"`{text}`" if text else "none"
        line.fail(
            f"`{word[0] if word else ''}`: expected a whole number in brackets, found {written}", at
        )
    return whole(text, line, at)


def end_of_line(line: Line, form: str = "") -> None:
    """Nothing may follow; ``form`` shows the operands that a statement has."""
    line.skip()
    extra = line.text[line.at :]
    if extra and opcode_in(extra):
        line.fail(f"one instruction stands in a line: {line.rest()} belongs on the next")
    if extra:
        why = operator_slip(extra) or (f"the form is `{form}`" if form else "")
        line.fail(f"expected the end of the line, found {line.rest()}{why and f': {why}'}")
