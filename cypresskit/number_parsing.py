"""Parse numbers as people type them, in any locale."""

import re
from math import inf, isfinite

#: A number or fraction, followed by its unit or no letters: "about 8x", "1/70".
NUMBER = (
    r"(?<![\w.,])([-+]?(?:\d[\d.,]*|[.,]\d+)(?:e[-+]?\d+)?)(?:\s*/\s*(\d+))?(?:x|UNIT)?(?![\w.,/])"
)
THOUSANDS = re.compile(r"(?<=\d)[\s'\u2019\u202f](?=\d{3}(?!\d))")


def number(text: str, unit: str = "") -> float | None:
    """Return the first number in a text, or None.

    1,3 and 0,5 are decimals, 1 000 and 1,000 thousands, 1/70 is a fraction. 2k, 0x10, 1.3.4, and
    any text with ``<`` are not numbers.

    Parameters
    ----------
    text
        The text.
    unit
        A unit that may follow the number without a space; by default ``x``.
    """
    pattern = NUMBER.replace("UNIT", re.escape(unit or "x"))
    match = re.search(pattern, THOUSANDS.sub("", text.replace("\u2212", "-")), re.I)
    if not match or "<" in text:
        return None
    digits = match[1].rstrip(".,")
    point = max(digits.rfind("."), digits.rfind(","))
    if point >= 0:
        whole = digits[:point]
        part = digits[point + 1 :]
        grouped = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+|[-+]?[1-9]\d{0,2}(\.\d{3}){2,}", digits)
        if not (
            grouped or re.fullmatch(rf"[-+]?(\d*|\d{{1,3}}([^\d{digits[point]}]\d{{3}})+)", whole)
        ):
            return None
        digits = re.sub("[.,]", "", digits) if grouped else f"{re.sub('[.,]', '', whole)}.{part}"
    value = float(digits) / float(match[2] or 1) if float(match[2] or 1) else inf
    return value if isfinite(value) else None
