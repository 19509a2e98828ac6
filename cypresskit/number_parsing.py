"""Parse numbers as people type them, in any locale: guesses and points."""

import re
from math import inf, isfinite

#: The first number, perhaps over another, touched by no letters but its unit's: "about 8x", "1/70";
#: see ``number``.
NUMBER = (
    r"(?<![\w.,])([-+]?(?:\d[\d.,]*|[.,]\d+)(?:e[-+]?\d+)?)(?:\s*/\s*(\d+))?(?:x|UNIT)?(?![\w.,/])"
)
THOUSANDS = re.compile(r"(?<=\d)[\s'\u2019\u202f](?=\d{3}(?!\d))")


def number(text: str, unit: str = "") -> float | None:
    """The first number in a text, or None. 1,3 and 0,5 are decimals, 1 000 and 1,000 thousands,
    1/70 a fraction; 2k, 0x10 and 1.3.4 are none, nor is anything with a ``<``.
    """
    pattern = NUMBER.replace("UNIT", re.escape(unit or "x"))
    match = re.search(pattern, THOUSANDS.sub("", text.replace("\u2212", "-")), re.I)
    if not match or "<" in text:
        return None
    digits = match[1].rstrip(".,")
    mark = max(digits.rfind("."), digits.rfind(","))
    if mark >= 0:
        whole = digits[:mark]
        part = digits[mark + 1 :]
        grouped = re.fullmatch(r"[-+]?[1-9]\d{0,2}(,\d{3})+|[-+]?[1-9]\d{0,2}(\.\d{3}){2,}", digits)
        if not (
            grouped or re.fullmatch(rf"[-+]?(\d*|\d{{1,3}}([^\d{digits[mark]}]\d{{3}})+)", whole)
        ):
            return None
        digits = re.sub("[.,]", "", digits) if grouped else f"{re.sub('[.,]', '', whole)}.{part}"
    value = float(digits) / float(match[2] or 1) if float(match[2] or 1) else inf
    return value if isfinite(value) else None
